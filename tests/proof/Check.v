(** Theorems (c), (d), (g) and what follows from seniority, checked for every small history.

    A history is told step by step; then every set of up to [k] further operations of a menu is tried, with every past:
    authors may backdate and contradict themselves. A check is a function from a history to true. *)

From Coq Require Import List Arith Bool.
From Proof Require Import Rules Epochs.
Import ListNotations.

(** Ids are not in the order of numbers. *)
Definition ident_of (n : nat) : nat := (n * 37) mod 251.

(** * Telling *)

Definition step := (nat * deed * list nat)%type.
Definition closure (H : list entry) (acks : list nat) : list entry :=
  filter (fun e => some (fun o => has (num o) acks &&& ((num o =? num e) ||| precedes e o)) H) H.
Definition pick (kept : list (option nat)) (n : nat) : option nat := nth n kept None.
Definition retarget (kept : list (option nat)) (d : deed) : deed :=
  let at_ n := match pick kept n with Some m => m | None => 999 end in
  match d with
  | Join i => Join (at_ i) | Revoke i => Revoke (at_ i) | Approve p => Approve (at_ p) | Withdraw o => Withdraw (at_ o)
  | _ => d
  end.
(** All that was accepted, and of each step its number, or nothing where it or what it follows was refused. *)
Definition tell_step (s : list entry * list (option nat)) (one : step) : list entry * list (option nat) :=
  let '(H, kept) := s in
  let '(a, d, acks) := one in
  if every (fun n => match pick kept n with Some _ => true | None => false end) acks then
    let at_ n := match pick kept n with Some m => m | None => 999 end in
    match admit (closure H (map at_ acks)) (length H) (ident_of (length H)) a (retarget kept d) with
    | Some e => (H ++ [e], kept ++ [Some (num e)])
    | None => (H, kept ++ [None])
    end
  else (H, kept ++ [None]).
Definition tell (steps : list step) : list entry * list (option nat) := fold_left tell_step steps ([], []).
Definition told (steps : list step) : list entry := fst (tell steps).

(** * Searching *)

Definition pasts (H : list entry) : list (list entry) :=
  filter (fun P => match P with [] => false | _ => true end)
    (fold_left (fun acc e => flat_map (fun P => if every (fun p => within p P) (past e) then [P; P ++ [e]] else [P]) acc)
               H [[]]).

Definition deed_code (d : deed) : nat :=
  match d with
  | Found _ => 0 | Grant u l => 1 + u * 6 + l | Remove u l => 40 + u * 6 + l | Invite l _ _ => 80 + l | Join _ => 90
  | Revoke _ => 91 | Quorum _ t _ => 92 + t | Propose u l => 100 + u * 6 + l | Approve _ => 140 | Act l => 141 + l
  | Withdraw _ => 150 | _ => 151
  end.
Definition code (e : entry) : nat := (length (past e) * 8 + author e) * 160 + deed_code (does e).
(** Of sets told in several orders, one is enough: what does not follow the last has no smaller code. *)
Definition in_order (H : list entry) (e : entry) : bool :=
  match rev H with z :: _ => precedes z e ||| (code z <=? code e) | [] => true end.

Definition menu := list entry -> list (nat * deed).
Definition extensions (offer : menu) (H : list entry) : list entry :=
  filter (in_order H)
    (flat_map (fun P => flat_map (fun c =>
       match admit P (length H) (ident_of (length H)) (fst c) (snd c) with Some e => [e] | None => [] end) (offer H))
      (pasts H)).

(** How many histories were checked, and one that fails. *)
Definition found := (nat * option (list entry))%type.
Fixpoint search (k : nat) (offer : menu) (good : list entry -> bool) (H : list entry) (acc : found) : found :=
  match snd acc with
  | Some _ => acc
  | None =>
      if good H then
        match k with
        | 0 => (S (fst acc), None)
        | S j => fold_left (fun acc e => search j offer good (H ++ [e]) acc) (extensions offer H) (S (fst acc), None)
        end
      else (S (fst acc), Some H)
  end.
Definition search_all (k : nat) (offer : menu) (good : list entry -> bool) (starts : list (list step)) : found :=
  fold_left (fun acc s => search k offer good (told s) acc) starts (0, None).

(** * Menus and starts *)

Definition cross (authors : list nat) (deeds : list deed) : list (nat * deed) :=
  flat_map (fun a => map (fun d => (a, d)) deeds) authors.
Definition people := [0; 1; 2; 3].
Definition admins_and_exclusions : menu := fun _ =>
  cross people (map (fun u => Grant u ADMIN) [1; 2; 3] ++ map (fun u => Remove u 0) people).
Definition invitations (H : list entry) : list nat :=
  flat_map (fun e => match does e with Invite _ _ _ => [num e] | _ => [] end) H.
Definition proposals (H : list entry) : list nat :=
  flat_map (fun e => match does e with Propose _ _ => [num e] | _ => [] end) H.
Definition all_kinds : menu := fun H =>
  cross people
    (map (fun u => Grant u WRITE) people ++ map (fun u => Grant u ADMIN) people ++ map (fun u => Grant u OWNER) people
     ++ map (fun u => Remove u 0) people ++ map (fun u => Remove u WRITE) people
     ++ [Invite WRITE 1 false; Act WRITE; Quorum [1; 2] 1 true; Propose 3 0]
     ++ map Revoke (invitations H) ++ map Join (invitations H) ++ map Approve (proposals H)).

Definition in_line : list step :=
  [(0, Found [0], []); (0, Grant 1 ADMIN, [0]); (0, Grant 2 ADMIN, [1]); (0, Grant 3 ADMIN, [2])].
Definition equals : list step :=
  [(0, Found [0], []); (0, Grant 1 ADMIN, [0]); (0, Grant 2 ADMIN, [0]); (0, Grant 3 ADMIN, [1; 2])].
Definition chain : list step :=
  [(0, Found [0], []); (0, Grant 1 ADMIN, [0]); (1, Grant 2 ADMIN, [1]); (2, Grant 3 ADMIN, [2])].
Definition owners : list step :=
  [(0, Found [0; 1], []); (0, Grant 2 OWNER, [0]); (1, Grant 3 ADMIN, [1])].
Definition links : list step :=
  [(0, Found [0], []); (0, Grant 1 ADMIN, [0]); (1, Invite WRITE 2 false, [1]); (2, Join 2, [2]); (0, Grant 3 ADMIN, [1])].
Definition signed : list step :=
  [(0, Found [0], []); (0, Quorum [0; 1; 2] 2 true, [0])].
Definition quorum_of_two : list step :=
  [(0, Found [0], []); (0, Grant 1 ADMIN, [0]); (0, Grant 2 ADMIN, [1]); (0, Grant 3 ADMIN, [2]);
   (0, Quorum [1; 2] 2 true, [3]); (1, Propose 3 0, [4]); (1, Approve 5, [5]); (2, Approve 5, [6])].
Definition one_out : list step := in_line ++ [(1, Remove 3 0, [3])].
Definition one_out_unseen : list step := in_line ++ [(1, Remove 2 0, [3]); (2, Grant 3 OWNER, [3]); (0, Act WRITE, [4])].
Definition demoted : list step := in_line ++ [(1, Remove 3 WRITE, [3]); (0, Remove 3 0, [4])].

Definition starts : list (list step) := [in_line; equals; chain; owners; links; one_out; one_out_unseen; demoted].
Definition starts_with_quorum : list (list step) := [quorum_of_two].

(** * (c) Who is out stays out *)

Definition had (W : list entry) (u : nat) : bool := some (fun c => 0 <? gives c u) W.
Definition left_itself (W : list entry) (u : nat) : bool := some (fun e => removes e u &&& is_leave e) W.
Definition named_in_quorum (W : list entry) (u : nat) : bool := some (fun q => signs q u) W.
Definition out (W : list entry) : list nat :=
  filter (fun u => had W u &&& (level W u =? 0) &&& negb (left_itself W u) &&& negb (named_in_quorum W u)) people.
Definition fresh := 4.

(** Nothing that the excluded write, or a key of theirs, now or dated before, gives them a right or takes one. *)
Definition attack (known : nat) (authors : list nat) : menu := fun H =>
  (* by links of theirs; whoever has another's may come by it *)
  cross [fresh] (map Join (filter (fun i => known <=? i) (invitations H))) ++
  cross (authors ++ [fresh])
    (map (fun u => Grant u WRITE) users ++ map (fun u => Grant u ADMIN) users ++ map (fun u => Grant u OWNER) users
     ++ map (fun u => Remove u 0) users ++ map (fun u => Remove u WRITE) users
     ++ [Invite WRITE 1 false; Quorum authors 1 true] ++ map Revoke (invitations H) ++ map Approve (proposals H)).
Definition stays_out (k : nat) (W : list entry) : bool :=
  match out W with
  | [] => true
  | gone =>
      let before := map (fun u => (u, level W u)) users in
      let unchanged W' := every (fun m => (snd m =? 0) ||| (level W' (fst m) =? snd m)) before
                          &&& every (fun u => level W' u =? 0) (fresh :: gone) in
      match snd (search k (attack (length W) gone) unchanged W (0, None)) with None => true | Some _ => false end
  end.

(** Strong removal: where the remover is senior to all that the excluded held, nothing unseen of it counts. *)
Definition acting (W : list entry) (m : entry) : list right := filter (holds_in W (deed_of m)) (rights m).
Definition strong_removal (W : list entry) : bool :=
  every (fun m =>
    match does m with
    | Remove u 0 =>
        let by_ := acting W m in
        let own := filter (fun r => negb (precedes m (fst r))) (rights_of (after W u) READ) in
        let back := filter (fun c => (0 <? gives c u) &&& precedes m c) W in
        is_leave m ||| negb (match by_ with [] => false | _ => true end)
        ||| negb (every (fun r => some (fun a => senior a r) by_) own)
        ||| every (fun e => negb (author e =? u) ||| precedes e m ||| (needs e =? 0) ||| some (fun c => precedes c e) back
                            ||| match quorums e with [] => false | _ => true end ||| negb (counts W e)) W
    | _ => true
    end) W.

(** Only a senior undoes: no one operation of a member, all of whose rights are junior to one by which a removal acts. *)
Definition only_seniors_undo (W : list entry) : bool :=
  every (fun m =>
    match does m with
    | Remove u _ =>
        is_leave m |||
        every (fun a =>
          let juniors := filter (fun v => every (senior a) (rights_of (after W v) READ)) (fresh :: people) in
          match snd (search 1 (attack (length W) juniors) (fun W' => some (fun b => (num (fst b) =? num (fst a)) &&& (snd b =? snd a)) (acting W' m))
                            W (0, None)) with
          | None => true | Some _ => false end) (acting W m)
    | _ => true
    end) W.

(** Founders leave by themselves alone. *)
Definition founders_stay (W : list entry) : bool :=
  match W with
  | f :: _ => match does f with
              | Found fs => every (fun u => (level W u =? OWNER) ||| left_itself W u ||| some is_quorum W) fs
              | _ => false
              end
  | [] => true
  end.

(** What counts by all has one answer in any order of the list. *)
Definition same_backwards (W : list entry) : bool :=
  every (fun u => level W u =? level (rev W) u) users &&& every (fun e => Bool.eqb (counts W e) (counts (rev W) e)) W.

Definition rights_are_safe (k : nat) (W : list entry) : bool :=
  stays_out k W &&& strong_removal W &&& founders_stay W &&& same_backwards W.

(** * (d) Pairs and circles of concurrent removals *)

(** Users 1 to [n] are admins, each appointed with some of those before in the past; then each may exclude another. *)
Fixpoint subsets_of (l : list nat) : list (list nat) :=
  match l with [] => [[]] | x :: l' => flat_map (fun s => [s; x :: s]) (subsets_of l') end.
Fixpoint appointments (n : nat) : list (list (list nat)) :=
  match n with
  | 0 => [[]]
  | S m => flat_map (fun g => map (fun s => g ++ [s]) (subsets_of (seq 1 m))) (appointments m)
  end.
(** Of each, nobody (0) or one of the others. *)
Fixpoint targets (n k : nat) : list (list nat) :=
  match k with
  | 0 => [[]]
  | S j => flat_map (fun f => map (fun t => f ++ [t]) (filter (fun t => negb (t =? k)) (seq 0 (S n)))) (targets n j)
  end.

Definition appointed (g : list (list nat)) : list step :=
  (0, Found [0], []) :: map (fun p => (0, Grant (fst p) ADMIN, 0 :: snd p)) (combine (seq 1 (length g)) g).
Definition excluded (g : list (list nat)) (f : list nat) : list step :=
  flat_map (fun p => match snd p with 0 => [] | t => [(fst p, Remove t 0, seq 0 (S (length g)))] end)
           (combine (seq 1 (length f)) f).

(** Whose appointment is in whose past: over the acknowledgements alone. *)
Fixpoint knows (k : nat) (g : list (list nat)) (a b : nat) : bool :=
  match k with
  | 0 => false
  | S j => let acks := nth (b - 1) g [] in has a acks ||| some (knows j g a) acks
  end.
Definition is_senior_of (g : list (list nat)) (a b : nat) : bool := knows (length g) g a b.
(** As the rules say: only a senior's removal is accepted; it counts unless one of its author counts. *)
Fixpoint falls (k : nat) (g : list (list nat)) (f : list nat) (u : nat) : bool :=
  match k with
  | 0 => false
  | S j => some (fun a => (nth (a - 1) f 0 =? u) &&& is_senior_of g a u &&& negb (falls j g f a)) (seq 1 (length f))
  end.
Definition circle_ends (g : list (list nat)) (f : list nat) : bool :=
  let W := told (appointed g ++ excluded g f) in
  every (fun u => Bool.eqb (level W u =? 0) (falls (S (length f)) g f u)) (seq 1 (length f))
  &&& (level W 0 =? OWNER).
(** A removal is refused exactly if its author is not senior. *)
Definition verdicts_right (g : list (list nat)) (f : list nat) : bool :=
  let '(_, kept) := tell (appointed g ++ excluded g f) in
  let expected := flat_map (fun p => match snd p with 0 => [] | t => [is_senior_of g (fst p) t] end)
                           (combine (seq 1 (length f)) f) in
  let given := map (fun o => match o with Some _ => true | None => false end) (skipn (S (length g)) kept) in
  if list_eq_dec Bool.bool_dec expected given then true else false.
(** Every way to appoint [n] admins, and every way in which each excludes one of the others, or nobody. *)
Definition circles (n : nat) : nat * bool :=
  fold_left (fun (acc : nat * bool) g => fold_left (fun (acc : nat * bool) f =>
    (S (fst acc), snd acc &&& circle_ends g f &&& verdicts_right g f)) (targets n n) acc) (appointments n) (0, true).

(** * (b), (g) Epochs: honest nodes with any views *)

(** A commit as an honest node writes it: what is due first, else what its user wishes, in the epoch in use. *)
Definition write (P : list entry) (n u : nat) (wish : deed) : option entry :=
  if can_act P u then
    match chore P u with
    | Some (d, e) => admit_in P n (ident_of n) u d e
    | None => match in_use P with
              | Some t => admit_in P n (ident_of n) u wish (num t)
              | None => None
              end
    end
  else None.
Definition own_seen (H P : list entry) (u : nat) : bool :=
  every (fun e => negb (author e =? u) ||| within e P) H.
Definition hostile := 3.
Definition wishes : list deed := [Act WRITE; Remove 1 0; Remove 2 0; Remove 3 0].
Definition honest_steps (H : list entry) : list entry :=
  flat_map (fun P => flat_map (fun u =>
    if own_seen H P u then
      match chore P u with
      | Some _ => match write P (length H) u (Act WRITE) with Some e => [e] | None => [] end
      | None => flat_map (fun d => match write P (length H) u d with Some e => [e] | None => [] end) wishes
      end
    else []) people) (pasts H).

(** Then all meet: members do what is due until nothing is. *)
Fixpoint tend (k : nat) (H : list entry) : list entry :=
  match k with
  | 0 => H
  | S j =>
      match flat_map (fun u => if can_act H u then
                                 match chore H u with
                                 | Some (d, e) => match admit_in H (length H) (ident_of (length H)) u d e with
                                                  | Some c => [c] | None => [] end
                                 | None => []
                                 end
                               else []) people with
      | c :: _ => tend j (H ++ [c])
      | [] => H
      end
  end.

(** Keys that [u] can compute from commits, apart from the words of Epochs.v. Who is [strict] opens a box only in a commit
    that it can open; else whatever was ever sealed for it is open, and who was granted a permission had a link. *)
Definition gained (strict : bool) (W : list entry) (u : nat) (keys : list nat) (e : entry) : list nat :=
  let reads := negb strict ||| has (epoch e) keys in
  (match does e with Found _ => if author e =? u then [num e] else [] | _ => if author e =? u then [epoch e] else [] end)
  ++ match does e with
     | Start boxes _ given =>
         (if (author e =? u) ||| (has u boxes &&& reads) then [num e] else [])
         ++ (if has (num e) keys then given else [])
     | Open given => if has (epoch e) keys then given else []
     | Hand m handed _ => if has u handed &&& reads then [m] else []
     | Grant v _ => if (v =? u) &&& negb strict then [epoch e] else []
     | _ => []
     end.
Fixpoint learn (k : nat) (strict : bool) (W : list entry) (u : nat) (keys : list nat) : list nat :=
  match k with
  | 0 => keys
  | S j => learn j strict W u (nodup Nat.eq_dec (keys ++ flat_map (gained strict W u keys) W))
  end.
Definition nobody := 99.
Definition keys_of (strict : bool) (W : list entry) (u : nat) : list nat := learn (2 * length (inits W) + 1) strict W u [].
Definition opened_with (keys : list nat) (e : entry) : bool :=
  match does e with Found _ => has (num e) keys | Start _ _ _ => has (num e) keys | _ => has (epoch e) keys end.
(** Who has the key of the epoch in which a commit is written opens all that it follows. *)
Definition can_be_followed (e : entry) : bool :=
  let W := e :: past e in
  let keys := learn (2 * length (inits W) + 1) true W nobody [main e] in
  every (opened_with keys) (past e).

(** An exclusion that counts for all who know it. *)
Definition is_settled (H : list entry) (m : entry) : bool :=
  counts H m &&& every (fun e => negb (precedes m e) ||| counts (past e) m) H.
Definition forks_merge (H : list entry) : bool :=
  let W := tend 12 H in
  match in_use W with
  | None => false                                                            (* one epoch is written in *)
  | Some t =>
      every (fun u => (level W u <? WRITE) |||                     (* who may write can, after all that is there *)
                      match admit_in W (length W) (ident_of (length W)) u (Act WRITE) (num t) with Some _ => true | None => false end)
            people &&&
      every (fun u => (level W u =? 0) |||
                      (let keys := keys_of true W u in
                       has (num t) keys &&& every (opened_with keys) W)) people  (* every member opens all *)
      &&& every (fun u => (0 <? level W u) ||| negb (has (num t) (keys_of false W u))) users   (* nobody else holds it *)
  end
  &&& every can_be_followed W
  (* what an author wrote who knew of an exclusion, the excluded cannot open *)
  &&& every (fun e => match does e with
                      | Act _ => every (fun m => match does m with
                                   | Remove u 0 => is_leave m ||| negb (is_settled W m) ||| (0 <? level W u)
                                                   ||| (author e =? hostile) ||| negb (has (epoch e) (keys_of false W u))
                                   | _ => true end) (past e)
                      | _ => true
                      end) W.

(** What a hostile member may do: any view, any epoch. *)
Definition hostile_steps (H : list entry) : list entry :=
  flat_map (fun P => flat_map (fun i => flat_map (fun d =>
      match admit_in P (length H) (ident_of (length H)) hostile d (num i) with Some e => [e] | None => [] end)
    (Act WRITE :: Open [num i] :: map (fun v => Hand (num i) [v] []) [1; 2] ++
     [Start (member_list P READ) (member_list P WRITE) [num i]; Start [hostile] [hostile] (map num (inits P))])) (inits H)) (pasts H).

Definition in_founding (one : step) (H : list entry) : list entry :=
  let '(a, d, acks) := one in
  match admit_in (closure H acks) (length H) (ident_of (length H)) a d 0 with Some e => H ++ [e] | None => H end.
(** 1, 2 and 3 came by a link, in the founding epoch; 1 and 2 are admins, in order or equals. *)
Definition founding_and_links : list step :=
  [(0, Invite WRITE 3 false, [0]); (1, Join 1, [1]); (2, Join 1, [2]); (3, Join 1, [3])].
Definition founded : list entry := told [(0, Found [0], [])].
Definition grown_in (steps : list step) : list entry := fold_left (fun H s => in_founding s H) steps founded.
Definition two_admins : list step := founding_and_links ++ [(0, Grant 1 ADMIN, [4]); (0, Grant 2 ADMIN, [5])].
Definition renewed (u : nat) : step := (u, Start [0; 1; 2; 3] [0; 1; 2; 3] [0], [6]).
Definition epoch_starts : list (list entry) :=
  [ grown_in two_admins;
    grown_in (founding_and_links ++ [(0, Grant 1 ADMIN, [4]); (0, Grant 2 ADMIN, [4]); (0, Act WRITE, [5; 6])]);
    grown_in (founding_and_links ++ [(0, Grant 1 ADMIN, [4]); (0, Revoke 1, [5])]);
    tend 2 (grown_in (two_admins ++ [(0, Remove 1 0, [6])]));      (* an epoch after an exclusion *)
    grown_in (two_admins ++ [renewed 0; renewed 2]) ].              (* two epochs beside each other *)

(** Histories of which one part alone of "may hold" or "surely holds" tells; each as it stands, then all meet. *)
Definition step_in (ep : nat) (one : step) (H : list entry) : list entry :=
  let '(a, d, acks) := one in
  match admit_in (closure H acks) (length H) (ident_of (length H)) a d ep with Some e => H ++ [e] | None => H end.
Definition follower : list step := two_admins ++ [(0, Grant 4 WRITE, [6])].
Definition after_exclusion : list entry := tend 1 (grown_in (two_admins ++ [(0, Remove 3 0, [6])])).
Definition late_joiner : list entry :=
  grown_in [(0, Invite WRITE 3 false, [0]); (1, Join 1, [1]); (2, Join 1, [2]); (0, Grant 1 ADMIN, [3]);
            (0, Grant 2 ADMIN, [4]); (0, Start [0; 1; 2] [0; 1; 2] [0], [5]); (3, Join 1, [3])].
Definition epoch_cases : list (list entry) :=
  [ grown_in ((0, Invite READ 3 false, [0]) :: tl two_admins ++ [(3, Remove 3 0, [6])]);     (* by writing *)
    grown_in (two_admins ++ [renewed 0; (2, Remove 2 0, [6])]);                    (* by a box *)
    grown_in (follower ++ [renewed 0; (0, Hand 8 [4] [], [7; 8]); (4, Remove 4 0, [7])]);     (* by a hand-over *)
    step_in 8 (0, Remove 1 WRITE, [8]) (step_in 8 (1, Grant 4 WRITE, [8]) after_exclusion);   (* by a grant *)
    step_in 0 (4, Remove 4 0, [7]) (step_in 9 (2, Open [8], [8; 9])                           (* by another epoch *)
      (grown_in (follower ++ [renewed 0; (2, Start users users [0], [7])])));
    step_in 6 (0, Start [0; 1; 2; 3] [0; 1; 2; 3] [6], [6; 7]) late_joiner;     (* 3 has a box where it cannot read *)
    step_in 6 (0, Hand 6 [3] [3], [6; 7]) late_joiner;                         (* is handed where it cannot read *)
    step_in 0 (0, Hand 9 [4] [4], [9]) (step_in 8 (0, Start users users [8], [7; 8])   (* handed in one of two *)
      (grown_in (follower ++ [renewed 0])));
    grown_in (two_admins ++ [(0, Remove 3 0, [6]); (0, Grant 3 WRITE, [7])]);    (* excluded, and let in again at once *)
    grown_in (two_admins ++ [(0, Remove 1 0, [6]); (0, Start [0; 2; 3] [0; 2; 3] [0], [7]); (1, Remove 3 0, [6])]);
    grown_in (founding_and_links ++ [(0, Remove 0 0, [4])]) ].               (* writers alone are left *)
Definition cases_are_told : bool :=
  if list_eq_dec Nat.eq_dec (map (@length entry) epoch_cases) [8; 9; 11; 11; 12; 9; 9; 11; 9; 10; 6] then true else false.

Fixpoint explore (bad : bool) (k : nat) (good : list entry -> bool) (H : list entry) (acc : found) : found :=
  match snd acc with
  | Some _ => acc
  | None =>
      if good H then
        match k with
        | 0 => (S (fst acc), None)
        | S j => fold_left (fun acc e => explore bad j good (H ++ [e]) acc) (filter (in_order H) (honest_steps H ++ (if bad then hostile_steps H else []))) (S (fst acc), None)
        end
      else (S (fst acc), Some H)
  end.
Definition explore_all (bad : bool) (k : nat) : found :=
  fold_left (fun acc H => explore bad 0 (fun H => cases_are_told &&& forks_merge H) H acc) epoch_cases
    (fold_left (fun acc H => explore bad k forks_merge H acc) epoch_starts (0, None)).
