(** Epochs: what one honest member accepts, every honest connected member can open and accepts (theorem b).

    An abstract form of rules E3 to E7 and E10 (docs/specification/membership-rules.md, section E). Commits are numbers,
    causes before effects; an epoch bears the number of the init that starts it. [ok] is the verdict that a commit's own
    past fixes (all of M, R and V). What a node can read follows from what it received and which keys it had at first.
    - [order_of_arrival_decides_nothing]: two nodes that have received the same have accepted the same.
    - [who_has_the_key_accepts]: who holds a commit's epoch opens and accepts it with its whole past.
    - [sure_holders_hold]: who surely holds an epoch by the rules' words has its key.
    - [every_connected_member_accepts]: theorem (b). *)

From Coq Require Import List Arith Lia.
Import ListNotations.

Section Arrival.
  Variable past : nat -> list nat.
  Variable ok : nat -> bool.
  Hypothesis earlier : forall c p, In p (past c) -> p < c.

  Inductive accepted (received : nat -> Prop) : nat -> Prop :=
  | accept : forall c, received c -> ok c = true -> (forall p, In p (past c) -> accepted received p) -> accepted received c.

  (** A node takes commits as they come; a commit is judged once its past is. *)
  Inductive node : (nat -> Prop) -> (nat -> Prop) -> Prop :=
  | starts_empty : node (fun _ => False) (fun _ => False)
  | receives : forall R A c, node R A -> node (fun x => R x \/ x = c) A
  | judges : forall R A c, node R A -> R c -> ok c = true -> (forall p, In p (past c) -> A p) ->
      node R (fun x => A x \/ x = c).

  Definition settled (R A : nat -> Prop) : Prop :=
    forall c, R c -> ok c = true -> (forall p, In p (past c) -> A p) -> A c.

  Lemma accepted_more : forall (R S : nat -> Prop), (forall c, R c -> S c) -> forall c, accepted R c -> accepted S c.
  Proof. intros R S H. induction 1. constructor; auto. Qed.

  Lemma node_sound : forall R A, node R A -> forall c, A c -> accepted R c.
  Proof.
    induction 1 as [|R A d N IH|R A d N IH Rd O P]; intros c H; [destruct H| |].
    - apply accepted_more with R; auto.
    - destruct H as [H| ->]; auto. constructor; auto.
  Qed.

  Lemma node_complete : forall R A, settled R A -> forall c, accepted R c -> A c.
  Proof. intros R A S. induction 1. apply S; auto. Qed.

  Theorem order_of_arrival_decides_nothing : forall R R' A A', node R A -> node R' A' -> settled R A -> settled R' A' ->
    (forall c, R c <-> R' c) -> forall c, A c <-> A' c.
  Proof.
    intros R R' A A' N N' S S' E c. split; intros H.
    - apply node_complete with R'; auto. apply accepted_more with R. { intros; apply E; auto. } apply node_sound with A; auto.
    - apply node_complete with R; auto. apply accepted_more with R'. { intros; apply E; auto. } apply node_sound with A'; auto.
  Qed.
End Arrival.

Section Connected.
  Variable past : nat -> list nat.
  Variable author : nat -> nat.
  Variable is_init : nat -> bool.
  (** The epoch that a commit names. *)
  Variable epoch : nat -> nat.
  (** Keys that a commit gives to who reads it (`epoch-open1`), or to who has the key of the epoch that it starts. *)
  Variable keys : nat -> list nat.
  (** Boxes of an init, and pairs of user and epoch that a commit hands over. *)
  Variable boxes : nat -> list nat.
  Variable hands : nat -> list (nat * nat).
  (** The epoch of which E4 asks: of an init the one that it starts, of a hand-over the one that it hands over. *)
  Variable main : nat -> nat.
  Variable ok : nat -> bool.
  (** The latest epochs of an init's past. *)
  Variable latest : nat -> list nat.

  Hypothesis earlier : forall c p, In p (past c) -> p < c.
  Hypothesis closed : forall c p q, In p (past c) -> In q (past p) -> In q (past c).

  (** Words: an epoch opens another within a set. *)
  Inductive opens (S : nat -> Prop) : nat -> nat -> Prop :=
  | opens_itself : forall e, opens S e e
  | opens_by_init : forall e m k, opens S e m -> S m -> is_init m = true -> In k (keys m) -> opens S e k
  | opens_by_open : forall e m c k, opens S e m -> S c -> is_init c = false -> epoch c = m -> In k (keys c) -> opens S e k.

  Definition self_and_past (c : nat) : nat -> Prop := fun x => x = c \/ In x (past c).

  Hypothesis E4 : forall c p, ok c = true -> In p (past c) -> is_init p = true -> opens (self_and_past c) (main c) p.
  Hypothesis E5 : forall c, ok c = true ->
    (past c = [] /\ is_init c = true) \/ (In (epoch c) (past c) /\ is_init (epoch c) = true).
  Hypothesis E4_init : forall c, is_init c = true -> main c = c.

  Section Node.
    Variable user : nat.
    Variable received : nat -> Prop.
    Variable first_keys : nat -> Prop.

    (** Keys are taken also from what waits or is rejected (E7); an init travels on the topic that it starts, too (E6). *)
    Inductive holds : nat -> Prop :=
    | at_first : forall e, first_keys e -> holds e
    | by_box : forall i, received i -> is_init i = true -> In user (boxes i) -> holds (epoch i) -> holds i
    | by_hand : forall c e, received c -> In (user, e) (hands c) -> holds (epoch c) -> holds e
    | by_key_of_init : forall i e, received i -> is_init i = true -> holds i -> In e (keys i) -> holds e
    | by_open : forall c e, received c -> is_init c = false -> holds (epoch c) -> In e (keys c) -> holds e.

    Definition opened (c : nat) : Prop := received c /\ (holds (epoch c) \/ (is_init c = true /\ holds c)).

    (** E3: an init is judged by who holds the key of the epoch that it starts. *)
    Inductive accepts : nat -> Prop :=
    | judged : forall c, opened c -> (is_init c = true -> holds c) -> ok c = true ->
        (forall p, In p (past c) -> accepts p) -> accepts c.

    Lemma opens_leads : forall (S : nat -> Prop) e k, (forall c, S c -> received c) -> opens S e k -> holds e -> holds k.
    Proof.
      intros S e k R O. induction O as [e|e m k O IH Sm I K|e m c k O IH Sc I Ep K]; intros H; auto.
      - apply by_key_of_init with m; auto.
      - apply by_open with c; auto. rewrite Ep. auto.
    Qed.

    Theorem who_has_the_key_accepts : forall c, holds (main c) ->
      (forall p, self_and_past c p -> received p /\ ok p = true) -> accepts c.
    Proof.
      intros c H All.
      assert (ok c = true) as Oc by (apply All; left; auto).
      assert (forall p, In p (past c) -> is_init p = true -> holds p) as Inits.
      { intros p Ip Hp. apply opens_leads with (self_and_past c) (main c); auto. intros x Hx. apply All; auto. }
      assert (forall n p, p < n -> In p (past c) -> accepts p) as Past.
      { induction n as [|n IH]; intros p L Ip; [lia|].
        destruct (All p (or_intror Ip)) as [Rp Op]. constructor; auto.
        - split; auto. destruct (E5 p Op) as [[_ I]|[Ie Ii]].
          + right. split; auto.
          + left. apply Inits; auto. eapply closed; eauto.
        - intros q Iq. apply IH. { specialize (earlier p q Iq). lia. } eapply closed; eauto. }
      constructor; auto.
      - split. { apply All; left; auto. } destruct (E5 c Oc) as [[_ I]|[Ie Ii]].
        + right. split; auto. rewrite <- (E4_init c I). auto.
        + left. apply Inits; auto.
      - intros I. rewrite <- (E4_init c I). auto.
      - intros p Ip. apply (Past (S p)); auto.
    Qed.

    Lemma accepts_past : forall d c, accepts d -> In c (past d) -> accepts c.
    Proof. intros d c H I. inversion H; auto. Qed.

    (** Words: surely holds, by a set of commits. *)
    Inductive surely (S : nat -> Prop) : nat -> Prop :=
    | sure_author : forall i, S i -> is_init i = true -> author i = user -> surely S i
    | sure_writer : forall c, S c -> author c = user -> past c <> [] -> surely S (epoch c)
    | sure_box : forall i, S i -> is_init i = true -> In user (boxes i) -> surely S (epoch i) -> surely S i
    | sure_hand : forall c e, S c -> In (user, e) (hands c) -> surely S (epoch c) -> surely S e
    | sure_everywhere : forall i, S i -> is_init i = true -> latest i <> [] ->
        (forall l, In l (latest i) -> exists c, S c /\ epoch c = l /\ In (user, i) (hands c)) -> surely S i
    | sure_opens : forall e k, surely S e -> opens S e k -> surely S k.

    (** A member has the keys of the epochs that it started or wrote in. A follower who was granted a permission has a link
        to one of the latest epochs. *)
    Hypothesis own_init : forall i, is_init i = true -> author i = user -> first_keys i.
    Hypothesis own_words : forall c, author c = user -> past c <> [] -> first_keys (epoch c).
    Hypothesis link : forall i, latest i <> [] -> exists l, In l (latest i) /\ first_keys l.

    Theorem sure_holders_hold : forall (S : nat -> Prop), (forall c, S c -> received c) -> forall e, surely S e -> holds e.
    Proof.
      intros S R e H. induction H as [i Si Ii A|c Sc A P|i Si Ii B _ IH|c e Sc B _ IH|i Si Ii L All|e k _ IH O].
      - apply at_first; auto.
      - apply at_first; auto.
      - apply by_box; auto.
      - apply by_hand with c; auto.
      - destruct (link i L) as [l [Il F]]. destruct (All l Il) as [c [Sc [Ep B]]].
        apply by_hand with c; auto. rewrite Ep. apply at_first; auto.
      - apply opens_leads with S e; auto.
    Qed.

    (** Theorem (b). [c] was accepted by an honest member: its past and itself are [ok]. An honest member who may write has
        met it, and wrote [d] in an epoch which the user surely holds, or was handed where the user surely holds another
        (E10), by commits [S] that the user has received. Then the user opens and accepts [c]. *)
    Theorem every_connected_member_accepts : forall (S : nat -> Prop) c d,
      (forall x, S x -> received x) ->
      (forall x, self_and_past d x -> received x /\ ok x = true) ->
      (c = d \/ In c (past d)) ->
      (surely S (main d) \/ exists h, S h /\ In (user, main d) (hands h) /\ surely S (epoch h)) ->
      accepts c /\ opened c.
    Proof.
      intros S c d R All I P.
      assert (holds (main d)) as H.
      { destruct P as [P|[h [Sh [B P]]]].
        - eapply sure_holders_hold; eauto.
        - apply by_hand with h; auto. eapply sure_holders_hold; eauto. }
      assert (accepts d) as D by (apply who_has_the_key_accepts; auto).
      assert (accepts c) as C by (destruct I as [-> |I]; auto; eapply accepts_past; eauto).
      split; auto. inversion C; auto.
    Qed.
  End Node.

  (** Two nodes that hold the epoch and received the same, come to the same verdict, whoever they are. *)
  Theorem verdicts_agree : forall u v (R F G : nat -> Prop) c, (forall p, self_and_past c p -> R p) ->
    holds u R F (main c) -> holds v R G (main c) -> accepts u R F c -> accepts v R G c.
  Proof.
    intros u v R F G c All Hu Hv A. apply who_has_the_key_accepts; auto.
    intros p Hp. split; auto. destruct Hp as [-> |Ip].
    - inversion A; auto.
    - apply (accepts_past u R F c p A) in Ip. inversion Ip; auto.
  Qed.

  (** Words: may hold. What hostile users give away outside the rules no rule can see; of what is in commits, who holds a
      key may hold it, so that no one else reads what is written in an epoch. *)
  Section Secrecy.
    Variable S : nat -> Prop.
    Inductive may_hold (u : nat) : nat -> Prop :=
    | may_author : forall i, S i -> is_init i = true -> author i = u -> may_hold u i
    | may_box : forall i, S i -> is_init i = true -> In u (boxes i) -> may_hold u i
    | may_hand : forall c e, S c -> In (u, e) (hands c) -> may_hold u e
    | may_writer : forall c, S c -> author c = u -> past c <> [] -> may_hold u (epoch c)
    | may_opens : forall e k, may_hold u e -> opens S e k -> may_hold u k.

    Theorem only_who_may_hold_holds : forall u (F : nat -> Prop), (forall e, F e -> may_hold u e) ->
      forall e, holds u S F e -> may_hold u e.
    Proof.
      intros u F HF e H. induction H as [e Fe|i R I B _ _|c e R B _ _|i e R I _ IH K|c e R I _ IH K]; auto.
      - apply may_box; auto.
      - eapply may_hand; eauto.
      - apply may_opens with i; auto. eapply opens_by_init; eauto. apply opens_itself.
      - apply may_opens with (epoch c); auto. eapply opens_by_open; eauto. apply opens_itself.
    Qed.
  End Secrecy.
End Connected.
