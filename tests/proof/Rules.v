(** The membership rules M1, M3 to M8, M12 to M14, Q1 to Q3 and R1 to R6, from docs/specification/membership-rules.md.

    Written from that page and from nothing else; `num` is a commit's identity, causes have smaller ones. Everything is
    computed from the set of operations, by the questions as the rules state them. The fuel is a bound on how many
    questions lead from one to the last; Unique.v proves that more gives the same.
    Left out: councils (Q4), links, profiles, branches, devices, moves, recovery friends, dates (an invitation is `late` or not), N2 to N4. *)

From Coq Require Import List Arith Bool.
Import ListNotations.

(** Lazy, so that the checker's machine asks the second question only where the first leaves it open. *)
Notation "a &&& b" := (if a then b else false) (at level 40, left associativity).
Notation "a ||| b" := (if a then true else b) (at level 50, left associativity).
Definition some {A} (f : A -> bool) : list A -> bool :=
  fix go l := match l with [] => false | x :: l' => f x ||| go l' end.
Definition every {A} (f : A -> bool) (l : list A) : bool := negb (some (fun x => negb (f x)) l).

(** Permissions; 0 is none. *)
Definition READ := 1.
Definition WRITE := 2.
Definition MANAGE := 3.
Definition ADMIN := 4.
Definition OWNER := 5.

Inductive deed :=
| Found (founders : list nat)
| Grant (user level : nat)
| Remove (user level : nat)
| Invite (level uses : nat) (late : bool)
| Join (invitation : nat)
| Revoke (invitation : nat)
| Quorum (signers : list nat) (threshold : nat) (covers : bool)
| Propose (user level : nat)
| Approve (proposal : nat)
| Act (level : nat)
| Withdraw (offer : nat)
| Start (boxes writers gives : list nat)
| Open (epochs : list nat)
| Hand (handed : nat) (users writers : list nat).

(** An accepted operation. Its id fixes its past, and so what it needs, and what it rests on under quorums (Q). *)
Inductive entry := Entry {
  num : nat;
  ident : nat;
  rank : nat;
  author : nat;
  past : list entry;
  does : deed;
  epoch : nat;
  needs : nat;
  quorums : list entry;
  asks : list (nat * list entry)
}.

Definition has (n : nat) (l : list nat) : bool := some (Nat.eqb n) l.
Definition within (e : entry) (l : list entry) : bool := some (fun o => num o =? num e) l.
Definition precedes (a b : entry) : bool := within a (past b).
Definition lookup (n : nat) (l : list entry) : option entry := find (fun e => num e =? n) l.

Definition is_quorum (e : entry) : bool := match does e with Quorum _ _ _ => true | _ => false end.
Definition is_leave (e : entry) : bool := match does e with Remove u _ => u =? author e | _ => false end.
Definition removes (e : entry) (u : nat) : bool := match does e with Remove v _ => u =? v | _ => false end.
Definition revokes (e : entry) (i : nat) : bool := match does e with Revoke j => i =? j | _ => false end.
Definition invitation_of (e : entry) : option entry :=
  match does e with
  | Join i => match lookup i (past e) with
              | Some inv => match does inv with Invite _ _ _ => Some inv | _ => None end
              | None => None
              end
  | _ => None
  end.

(** Words: what a credential gives to a user. *)
Definition gives (c : entry) (u : nat) : nat :=
  match does c with
  | Found founders => if has u founders then OWNER else 0
  | Grant v l => if u =? v then l else 0
  | Join _ => match invitation_of c with
              | Some inv => match does inv with
                            | Invite l _ _ => if u =? author c then Nat.min l MANAGE else 0  (* M3: at most write *)
                            | _ => 0
                            end
              | None => 0
              end
  | _ => 0
  end.

Definition right := (entry * nat)%type.

(** R1 *)
Definition senior (a b : right) : bool :=
  (snd b <? snd a) ||| ((snd a =? snd b) &&& precedes (fst a) (fst b)).

(** An act for which a right is asked: who does it, its past, the removals that have it in their past. *)
Record act := Deed { who : nat; follows : list entry; known : entry -> bool; removal : option entry }.
Definition deed_of (e : entry) : act :=
  Deed (author e) (past e) (fun m => precedes e m) (match does e with Remove _ _ => Some e | _ => None end).
Definition after (W : list entry) (u : nat) : act := Deed u W (fun _ => false) None.

Definition levels (lowest highest : nat) : list nat := seq (Nat.max 1 lowest) (S highest - Nat.max 1 lowest).
Definition rights_of (x : act) (lowest : nat) : list right :=
  flat_map (fun c => map (fun l => (c, l)) (levels lowest (gives c (who x)))) (follows x).
(** The rights that suffice for an operation. *)
Definition rights (e : entry) : list right :=
  rights_of (deed_of e) (needs e) ++ map (fun q => (q, OWNER)) (quorums e).

Section Questions.
  (** [h x r b]: is the right held for the act; with [b], as far as what acts by rights senior to it says. *)
  Variable W : list entry.
  Variable h : act -> right -> option right -> bool.

  Definition held_by_some (e : entry) (b : option right) : bool :=
    some (fun r => h (deed_of e) r b) (rights e).

  Definition below (b : option right) (a : right) : bool := match b with Some r => senior a r | None => true end.

  (** A removal or revocation acts by a right of which [fits] is true. *)
  Definition acts (e : entry) (fits : right -> bool) : bool :=
    some (fun a => fits a &&& h (deed_of e) a None) (rights e).

  (** R2 *)
  Definition stands (e : entry) (b : option right) : bool := (needs e =? 0) ||| held_by_some e b.
  Definition counts_by (e : entry) (b : option right) : bool :=
    match does e with
    | Join i => match invitation_of e with
                | Some inv => stands inv b &&&
                    negb (some (fun v => revokes v i &&& negb (precedes v e) &&& negb (precedes e v)
                                         &&& acts v (below b)) W)
                | None => false
                end
    | _ => stands e b
    end.

  (** R4, R5 *)
  Definition takes (m : entry) (x : act) (r : right) (b : option right) : bool :=
    match does m with
    | Remove u l =>
        (u =? who x) &&& (l <? snd r)
        &&& negb (precedes m (fst r))
        &&& negb (known x m)
        &&& (if is_leave m then within m (follows x) else acts m (fun a => below b a &&& senior a r))
    | _ => false
    end.

  (** R6 *)
  Definition approved (x : act) (r : right) : bool :=
    match removal x with
    | None => true
    | Some e => every (fun ask => fst ask <=? length (filter (fun a => counts_by a (Some r)) (snd ask))) (asks e)
    end.

  (** R3 *)
  Definition holds_by (x : act) (r : right) (b : option right) : bool :=
    counts_by (fst r) b
    &&& (is_quorum (fst r) ||| negb (some (fun m => takes m x r b) W))
    &&& approved x r.
End Questions.

Fixpoint holds (n : nat) (W : list entry) (x : act) (r : right) (b : option right) : bool :=
  match n with
  | 0 => false
  | S m => holds_by W (holds m W) x r b
  end.

Definition size (W : list entry) : nat := S (list_max (map num W)).
Definition fuel (W : list entry) : nat := S (6 * size W + 1) * S (6 * size W + 1).
Definition holds_in (W : list entry) (x : act) (r : right) : bool := holds (fuel W) W x r None.
Definition counts (W : list entry) (e : entry) : bool := counts_by W (holds (fuel W) W) e None.

Definition held (W : list entry) (u : nat) : list right :=
  filter (holds_in W (after W u)) (rights_of (after W u) READ).
(** The highest permission that a user holds, or 0. *)
Definition holds_level (W : list entry) (u l : nat) : bool :=
  some (fun r => (snd r =? l) &&& holds_in W (after W u) r) (rights_of (after W u) l).
Definition level (W : list entry) (u : nat) : nat :=
  match find (holds_level W u) [OWNER; ADMIN; MANAGE; WRITE; READ] with Some l => l | None => 0 end.
Definition members (W : list entry) (users : list nat) : list (nat * nat) :=
  filter (fun m => 0 <? snd m) (map (fun u => (u, level W u)) users).

(** * Q *)

Definition signs (q : entry) (u : nat) : bool :=
  match does q with Quorum signers _ _ => has u signers | _ => false end.
Definition threshold (q : entry) : nat := match does q with Quorum _ t _ => t | _ => 0 end.
Definition covers (q : entry) : bool := match does q with Quorum _ _ c => c | _ => false end.

(** Q1 *)
Definition in_force (P : list entry) : list entry :=
  let named := filter (fun q => is_quorum q &&& counts P q) P in
  filter (fun q => negb (some (fun o => precedes q o) named)) named.
Definition covering (P : list entry) : list entry := filter covers (in_force P).

Definition comes_before (a b : entry) : bool :=
  (rank a <? rank b) ||| ((rank a =? rank b) &&& (ident a <? ident b)).
Definition approves (e : entry) (p : nat) : bool := match does e with Approve q => p =? q | _ => false end.
(** Of each signer, the first approval in canonical order that counts in the past. *)
Definition first_approvals (P : list entry) (p : nat) : list entry :=
  let counting := filter (fun a => approves a p &&& counts P a) P in
  filter (fun a => negb (some (fun o => (author o =? author a) &&& comes_before o a) counting)) counting.

(** Q3: a proposal that asks for just this removal, and is not used up *)
Definition asks_for (P : list entry) (u l : nat) (p : entry) : bool :=
  match does p with
  | Propose v k => (u =? v) &&& (l =? k)
      &&& negb (some (fun o => removes o u &&& negb (is_leave o) &&& precedes p o) P)
  | _ => false
  end.

(** Q2: threshold and approvals of each quorum that covers removals, for the first proposal that has them all *)
Definition demands (P : list entry) (u l : nat) : list (nat * list entry) :=
  let qs := covering P in
  let given p := map (fun q => (threshold q, filter (fun a => signs q (author a)) (first_approvals P (num p)))) qs in
  let enough p := asks_for P u l p &&& every (fun ask => fst ask <=? length (snd ask)) (given p) in
  match qs with
  | [] => []
  | _ => let ready := filter enough P in
         match find (fun p => negb (some (fun o => comes_before o p) ready)) ready with
         | Some p => given p
         | None => map (fun q => (threshold q, [])) qs
         end
  end.

(** * M *)

Definition needed (a : nat) (d : deed) : nat :=
  match d with
  | Found _ | Join _ | Withdraw _ => 0
  | Grant _ l => Nat.max ADMIN l
  | Remove u _ => if u =? a then 0 else ADMIN
  | Invite _ _ _ | Revoke _ | Start _ _ _ => ADMIN
  | Quorum _ _ _ => OWNER
  | Propose _ _ | Open _ | Hand _ _ _ => WRITE
  | Approve _ => READ
  | Act l => l
  end.

(** What a removal of another is to take: rights above what it leaves. Where none is held, those that leaves alone took. *)
Definition to_take (P : list entry) (u l : nat) : list right :=
  let above := filter (fun r => l <? snd r) in
  let stays r := counts P (fst r)
    &&& negb (some (fun m => negb (is_leave m) &&& takes (holds (fuel P) P) m (after P u) r None) P) in
  match above (held P u) with
  | [] => filter stays (above (rights_of (after P u) READ))
  | found => found
  end.

(** M7, for a removal of another *)
Definition may_remove (P : list entry) (e : entry) (u l : nat) : bool :=
  let W := e :: P in
  let acting := filter (holds_in W (deed_of e)) (rights e) in
  match to_take P u l with
  | [] => false
  | taken => (WRITE <=? level P (author e)) &&& every (fun r => some (fun a => senior a r) acting) taken
  end.

(** M4 *)
Definition may_join (P : list entry) (u i : nat) : bool :=
  match lookup i P with
  | Some inv =>
      match does inv with
      | Invite _ uses late =>
          let joined := nodup Nat.eq_dec
            (map author (filter (fun j => match does j with Join k => (i =? k) &&& counts P j | _ => false end) P)) in
          negb late
          &&& counts P inv
          &&& negb (some (fun v => revokes v i &&& counts P v) P)
          &&& negb (some (fun m => removes m u &&& negb (precedes m inv) &&& counts P m) P)
          &&& (has u joined ||| (length joined <? uses))
      | _ => false
      end
  | None => false
  end.

Definition may (P : list entry) (e : entry) : bool :=
  let mine := level P (author e) in
  match does e with
  | Found founders => match P with [] => has (author e) founders | _ => false end
  | Remove u l => if is_leave e then l <? level P u else may_remove P e u l
  | Join i => may_join P (author e) i
  | Withdraw t => some (fun o => (num o =? t) &&& (author o =? author e)) P
  | Grant u l => (needs e <=? mine) &&& (level P u <? l)
  | Invite l _ _ => (needs e <=? mine) &&& (l <=? WRITE)
  | Revoke i => (needs e <=? mine) &&& match lookup i P with
                                       | Some inv => match does inv with Invite _ _ _ => true | _ => false end
                                       | None => false
                                       end
  | Quorum signers t _ => (needs e <=? mine) &&& (0 <? t) &&& (t <=? length signers)
                          &&& every (fun s => 0 <? level P s) signers
  | Approve p => (needs e <=? mine)
      &&& match lookup p P with
          | Some o => match does o with Propose _ _ => true | _ => false end
          | None => false
          end
      &&& some (fun q => signs q (author e)) (in_force P)
  | _ => needs e <=? mine
  end.

Definition make (P : list entry) (number identity who_ : nat) (d : deed) (ep need : nat) : entry :=
  let is_removal := match d with Remove u _ => negb (u =? who_) | _ => false end in
  Entry number identity (match P with [] => 0 | _ => S (list_max (map rank P)) end) who_ P d ep need
    (if is_removal then covering P else [])
    (match d with Remove u l => if is_removal then demands P u l else [] | _ => [] end).

(** The verdict on an operation, by its past alone: the operation as it is kept, or nothing. *)
Definition admit (P : list entry) (number identity who_ : nat) (d : deed) : option entry :=
  let e := make P number identity who_ d 0 (needed who_ d) in
  if may P e then Some e else None.
