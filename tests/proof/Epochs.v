(** Epochs, executable: rules E2, E4, E5, E8 to E11 and M9 to M11, from docs/specification/membership-rules.md.

    An epoch bears the number of the init that starts it; the founding one has number 0. Keys, boxes and marks are left
    out: who has a box of an epoch and can read it has the key (Connected.v). *)

From Coq Require Import List Arith Bool.
From Proof Require Import Rules.
Import ListNotations.

Definition users : list nat := [0; 1; 2; 3; 4].

Definition inits (W : list entry) : list entry :=
  filter (fun e => match does e with Found _ | Start _ _ _ => true | _ => false end) W.

(** Opens *)
Definition given_by (W : list entry) (n : nat) : list nat :=
  flat_map (fun e => match does e with
                     | Start _ _ given => if num e =? n then given else []
                     | Open given => if epoch e =? n then given else []
                     | _ => []
                     end) W.
Fixpoint spread (k : nat) (W : list entry) (found : list nat) : list nat :=
  match k with
  | 0 => found
  | S j => spread j W (nodup Nat.eq_dec (found ++ flat_map (given_by W) found))
  end.
Definition opens (W : list entry) (n : nat) : list nat := spread (length (inits W)) W [n].
Definition opens_all (W : list entry) (n : nat) (P : list entry) : bool :=
  let opened := opens W n in every (fun i => has (num i) opened) (inits P).

(** May hold *)
Definition granted_in (e : entry) (n : nat) : list nat :=
  match does e with
  | Found _ => if num e =? n then [author e] else []
  | Start boxes _ _ => (if num e =? n then author e :: boxes else []) ++ (if epoch e =? n then [author e] else [])
  | Hand m handed _ => (if m =? n then handed else []) ++ (if epoch e =? n then [author e] else [])
  | Grant u _ => if epoch e =? n then [author e; u] else []
  | _ => if epoch e =? n then [author e] else []
  end.
Definition may_hold (W : list entry) (n u : nat) : bool :=
  some (fun i => has n (opens W (num i)) &&& some (fun e => has u (granted_in e (num i))) W) (inits W).
Definition may_hold_writers (W : list entry) (n u : nat) : bool :=
  some (fun e => match does e with
                 | Found _ => (num e =? n) &&& (u =? author e)
                 | Start _ writers _ => (num e =? n) &&& ((u =? author e) ||| has u writers)
                 | Hand m _ writers => (m =? n) &&& has u writers
                 | Join _ => (epoch e =? n) &&& (u =? author e) &&& (WRITE <=? gives e u)
                 | _ => false
                 end) W.

(** Surely holds *)
Definition sure_of (W : list entry) (u : nat) (sure : list nat) : list nat :=
  flat_map (fun e =>
    (match does e with
     | Found _ => if u =? author e then [num e] else []
     | Start boxes _ _ =>
         (if u =? author e then [num e; epoch e] else [])
         ++ (if has u boxes &&& has (epoch e) sure then [num e] else [])
         ++ (if every (fun l => some (fun h => match does h with
                                               | Hand m handed _ => (m =? num e) &&& has u handed &&& (epoch h =? num l)
                                               | _ => false
                                               end) W) (inits (past e)) then [num e] else [])
     | Hand m handed _ =>
         (if u =? author e then [epoch e] else [])
         ++ (if has u handed &&& has (epoch e) sure then [m] else [])
     | _ => if u =? author e then [epoch e] else []
     end)) W.
Fixpoint sure_after (k : nat) (W : list entry) (u : nat) (sure : list nat) : list nat :=
  match k with
  | 0 => sure
  | S j => sure_after j W u (nodup Nat.eq_dec (sure ++ sure_of W u sure ++ flat_map (opens W) sure))
  end.
Definition surely_held (W : list entry) (u : nat) : list nat := sure_after (S (2 * length (inits W))) W u [].

(** Tips, clean, due (E8) *)
Definition tips (W : list entry) : list entry :=
  let counting := filter (counts W) (inits W) in
  filter (fun t => negb (some (fun o => precedes t o) counting)) counting.
Definition beside (a b : entry) : bool := negb (precedes a b) &&& negb (precedes b a).
Definition clean (W : list entry) (t : entry) : bool :=
  every (fun m => match does m with
                  | Remove _ l => is_leave m ||| (WRITE <=? l) ||| precedes m t ||| negb (counts W m)
                  | Revoke i => precedes m t ||| negb (counts W m)
                      ||| negb (some (fun j => match does j with Join k => (i =? k) &&& beside m j | _ => false end) W)
                  | _ => true
                  end) W
  &&& every (fun u => (0 <? level W u) ||| negb (may_hold W (num t) u)) users
  &&& every (fun u => (WRITE <=? level W u) ||| negb (may_hold_writers W (num t) u)) users.
Definition clean_tips (W : list entry) : list entry := filter (clean W) (tips W).
Definition due (W : list entry) : bool := match clean_tips W with [] => true | _ => false end.
Definition box_count (t : entry) : nat := match does t with Start boxes _ _ => length boxes | _ => 0 end.
Definition preferred (a b : entry) : bool :=
  (box_count a <? box_count b) ||| ((box_count a =? box_count b) &&& (ident a <? ident b)).
Definition in_use (W : list entry) : option entry :=
  let those := clean_tips W in find (fun t => negb (some (fun o => preferred o t) those)) those.

(** * Verdicts *)

Definition member_list (P : list entry) (lowest : nat) : list nat := filter (fun u => lowest <=? level P u) users.
(** E4 asks of the epoch that an init starts, that a hand-over hands over; of others, of their own. *)
Definition main (e : entry) : nat := match does e with Start _ _ _ => num e | Hand m _ _ => m | _ => epoch e end.
Definition started_in (P : list entry) (n : nat) : bool := some (fun i => num i =? n) (inits P).

Definition may_epoch (P : list entry) (e : entry) : bool :=
  started_in P (epoch e)                                     (* E5 *)
  &&& opens_all (e :: P) (main e) P                          (* E4 *)
  &&& match does e with
      | Start boxes writers given =>                          (* E2 *)
          (if list_eq_dec Nat.eq_dec boxes (member_list P READ) then true else false)
          &&& (length writers =? length (member_list P WRITE))
          &&& has (epoch e) given &&& every (started_in P) given
      | Hand m handed writers =>                              (* M10 *)
          started_in P m &&& every (fun u => 0 <? level P u) handed &&& every (fun u => WRITE <=? level P u) writers
      | Open given => every (started_in P) given              (* M11 *)
      | _ => true
      end.

(** M9: an init needs write while an epoch is due, else admin. *)
Definition needed_in (P : list entry) (a : nat) (d : deed) : nat :=
  match d with Start _ _ _ => if due P then WRITE else ADMIN | _ => needed a d end.
Definition admit_in (P : list entry) (number identity who_ : nat) (d : deed) (ep : nat) : option entry :=
  let e := make P number identity who_ d ep (needed_in P who_ d) in
  if may P e &&& may_epoch P e then Some e else None.

(** * What honest nodes do (E8 to E11) *)

Definition latest_of (W : list entry) (ns : list nat) : option entry :=
  let those := filter (fun i => has (num i) ns) (inits W) in
  find (fun t => negb (some (fun o => comes_before t o) those)) those.

(** Epochs that no other opens: with their keys all are opened. *)
Definition unopened (P : list entry) : list nat :=
  map num (filter (fun i => negb (some (fun j => negb (num j =? num i) &&& has (num i) (opens P (num j))) (inits P))) (inits P)).
(** The init that is due, published in the latest epoch that its author surely holds; it opens all epochs before it. *)
Definition due_init (P : list entry) (u : nat) : option (deed * nat) :=
  match latest_of P (surely_held P u) with
  | Some e => Some (Start (member_list P READ) (member_list P WRITE) (nodup Nat.eq_dec (num e :: unopened P)), num e)
  | None => None
  end.

(** Which member is to be handed the epoch in use, and in which epoch (E10). *)
Definition to_hand (P : list entry) (t : entry) : list (nat * nat) :=
  flat_map (fun v => if has (num t) (surely_held P v) then [] else
                     match latest_of P (surely_held P v) with Some e => [(v, num e)] | None => [] end)
           (member_list P READ).

(** What [u] does with the view [P] before anything else: start the epoch that is due, open, hand over; or nothing. *)
Definition chore (P : list entry) (u : nat) : option (deed * nat) :=
  match in_use P with
  | None => due_init P u
  | Some t =>
      if opens_all P (num t) P then
        match to_hand P t with
        | (v, e) :: _ => Some (Hand (num t) [v] (if WRITE <=? level P v then [v] else []), e)
        | [] => None
        end
      else Some (Open (unopened P), num t)
  end.
(** A node can act in an epoch whose key it has. *)
Definition can_act (P : list entry) (u : nat) : bool :=
  (WRITE <=? level P u) &&&
  match in_use P with Some t => has (num t) (surely_held P u) | None => true end.
