(** ScuttleSort 0.0.6 step by step, as its authors publish it, and the canonical order, to be compared on all small graphs.

    Order.v proves the end of any list that raises ranks in waves and lets what was reached rise. This file has the
    published order of steps: where a new entry is put, which edges come first, how a wave walks, what jumps. *)

From Coq Require Import List Arith Bool.
From Proof Require Import Rules.
Import ListNotations.

Record line := Line { list_ : list nat; rank_of : list (nat * nat); effects_of : list (nat * list nat);
                      waiting : list (nat * nat) }.

Definition rank_in (s : line) (x : nat) : nat :=
  match find (fun p => fst p =? x) (rank_of s) with Some p => snd p | None => 0 end.
Definition effects (s : line) (x : nat) : list nat :=
  match find (fun p => fst p =? x) (effects_of s) with Some p => snd p | None => [] end.
Definition raise_to (s : line) (x k : nat) : line :=
  Line (list_ s) ((x, k) :: rank_of s) (effects_of s) (waiting s).
Definition add_effect (s : line) (c e : nat) : line :=
  Line (list_ s) (rank_of s) ((c, effects s c ++ [e]) :: effects_of s) (waiting s).
Definition set_list (s : line) (l : list nat) : line := Line l (rank_of s) (effects_of s) (waiting s).

Fixpoint index (x : nat) (l : list nat) : nat :=
  match l with [] => 0 | y :: l' => if x =? y then 0 else S (index x l') end.
Definition without (x : nat) (l : list nat) : list nat := filter (fun y => negb (y =? x)) l.
(** Move [x] to the index [i] that it is to have. *)
Definition put (x i : nat) (l : list nat) : list nat :=
  let rest := without x l in firstn i rest ++ x :: skipn i rest.

(** Past those of lower rank, then past those of the same rank and a smaller name. *)
Fixpoint passed_by (s : line) (x : nat) (equals : bool) (behind : list nat) : nat :=
  match behind with
  | [] => 0
  | y :: l =>
      if negb equals &&& (rank_in s y <? rank_in s x) then S (passed_by s x false l)
      else if (rank_in s y =? rank_in s x) &&& (y <? x) then S (passed_by s x true l)
      else 0
  end.
Definition rise (s : line) (x : nat) : line :=
  let i := index x (list_ s) in
  set_list s (put x (i + passed_by s x false (skipn (S i) (list_ s))) (list_ s)).

(** The wave: a stack of what is to be visited, each with the rank that it must have. *)
Fixpoint visit (k : nat) (s : line) (stack : list (nat * nat)) (visited : list nat) : line * list nat :=
  match k with
  | 0 => (s, visited)
  | S j =>
      match stack with
      | [] => (s, visited)
      | (c, r) :: rest =>
          if rank_in s c <? r
          then visit j (raise_to s c r) (map (fun e => (e, S r)) (rev (effects s c)) ++ rest) (c :: visited)
          else visit j s rest (c :: visited)
      end
  end.

Fixpoint insert_by (f : nat -> nat -> bool) (x : nat) (l : list nat) : list nat :=
  match l with [] => [x] | y :: l' => if f y x then y :: insert_by f x l' else x :: l end.
Definition sort_by (f : nat -> nat -> bool) (l : list nat) : list nat := fold_right (insert_by f) [] l.

Definition add_edge (s : line) (effect cause : nat) : line :=
  let (s1, visited) := visit 200 s [(effect, S (rank_in s cause))] [] in
  let behind := index cause (list_ s1) in
  let s2 := if index effect (list_ s1) <? behind then set_list s1 (put effect behind (list_ s1)) else rise s1 effect in
  let last_first := sort_by (fun a b => index b (list_ s2) <? index a (list_ s2)) (nodup Nat.eq_dec visited) in
  fold_left rise last_first s2.

Definition take (causes_of : nat -> list nat) (s : line) (x : nat) : line :=
  let known := filter (fun c => has c (list_ s)) (causes_of x) in
  let late := filter (fun c => negb (has c (list_ s))) (causes_of x) in
  let pos := list_max (map (fun c => index c (list_ s)) known) in
  let waits := filter (fun p => fst p =? x) (waiting s) in
  let s0 := Line (firstn pos (list_ s) ++ x :: skipn pos (list_ s)) ((x, 0) :: rank_of s) (effects_of s)
                 (map (fun c => (c, x)) late ++ waiting s) in
  let s1 := fold_left (fun t c => add_effect t c x) known s0 in
  let s2 := match known with [] => rise s1 x | _ => fold_left (fun t c => add_edge t x c) known s1 end in
  fold_left (fun t p => add_effect (add_edge t (snd p) x) x (snd p)) (rev waits) s2.

Definition play (causes_of : nat -> list nat) (delivery : list nat) : list nat :=
  list_ (fold_left (take causes_of) delivery (Line [] [] [] [])).

(** The canonical order: longest path, then name. *)
Fixpoint depth (k : nat) (causes_of : nat -> list nat) (x : nat) : nat :=
  match k with 0 => 0 | S j => list_max (map (fun c => S (depth j causes_of c)) (causes_of x)) end.
Definition canonical (causes_of : nat -> list nat) (l : list nat) : list nat :=
  let d := depth (length l) causes_of in
  sort_by (fun a b => (d a <? d b) ||| ((d a =? d b) &&& (a <? b))) l.

Fixpoint interleave (x : nat) (l : list nat) : list (list nat) :=
  match l with [] => [[x]] | y :: l' => (x :: l) :: map (cons y) (interleave x l') end.
Fixpoint permutations (l : list nat) : list (list nat) :=
  match l with [] => [[]] | x :: l' => flat_map (interleave x) (permutations l') end.
Fixpoint subsets (l : list nat) : list (list nat) :=
  match l with [] => [[]] | x :: l' => flat_map (fun s => [s; x :: s]) (subsets l') end.
(** Every graph of [n] entries, as causes among those of smaller age; ages are not names. *)
Fixpoint graphs (n : nat) : list (list (list nat)) :=
  match n with 0 => [[]] | S m => flat_map (fun g => map (fun c => g ++ [c]) (subsets (seq 0 m))) (graphs m) end.

(** The causes of a name, where the entry of age [i] has the name [nth i names]. *)
Definition named (g : list (list nat)) (names : list nat) (x : nat) : list nat :=
  map (fun c => nth c names 0) (nth (index x names) g []).

(** Every graph of [n] entries, with all names, in all orders of delivery: how many, and whether all end sorted. *)
Definition eager_check (n : nat) : nat * bool :=
  fold_left (fun (acc : nat * bool) g =>
    fold_left (fun (acc : nat * bool) names =>
      fold_left (fun (acc : nat * bool) delivery =>
        let causes_of := named g names in
        (S (fst acc), snd acc &&&
          (if list_eq_dec Nat.eq_dec (play causes_of delivery) (canonical causes_of (seq 0 n)) then true else false)))
        (permutations (seq 0 n)) acc)
      (permutations (seq 0 n)) acc)
    (graphs n) (0, true).
