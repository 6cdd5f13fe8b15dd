(** The canonical order of a timeline, eager timelines that come to it, and the fewest edits between two timelines.

    The definition is in docs/understanding/order.md: a branch is sorted by (checkpoints passed, rank, id).
    - [timeline_is_a_function_of_the_set]: nodes with the same commits sort alike (theorem a).
    - [causes_come_first]: a cause stands before its effects.
    - [eager_ends_in_canonical_order]: a list that shows commits before their causes ends sorted by (rank, name), whatever
      the order of arrival, of edges and within each wave (theorem e). ScuttleSort 0.0.6 is such a list.
    - [net_is_least] and [net_is_reached]: no script of inserts, moves and removals is shorter than the elements outside
      a longest common subsequence, and one of that length is there (theorem f). *)

From Coq Require Import List Arith Lia Permutation Sorted Bool.
Import ListNotations.

(** * Sorted lists *)

Section Sorting.
  Variable A : Type.
  Variable lt : A -> A -> Prop.
  Hypothesis irreflexive : forall x, ~ lt x x.
  Hypothesis transitive : forall x y z, lt x y -> lt y z -> lt x z.

  (** A sorted list without equals is fixed by its elements. *)
  Lemma sorted_unique : forall l l', StronglySorted lt l -> StronglySorted lt l' ->
    (forall x, In x l <-> In x l') -> l = l'.
  Proof.
    induction l as [|a l IH]; intros l' Hs Hs' Hin.
    - destruct l' as [|b l']; auto. exfalso. apply (proj2 (Hin b)). left; auto.
    - destruct l' as [|b l'].
      + exfalso. apply (proj1 (Hin a)). left; auto.
      + inversion Hs as [|? ? Hl Ha]; inversion Hs' as [|? ? Hl' Hb]; subst.
        rewrite Forall_forall in Ha, Hb.
        assert (a = b) as E.
        { destruct (proj1 (Hin a) (or_introl eq_refl)) as [E|Ia]; auto.
          destruct (proj2 (Hin b) (or_introl eq_refl)) as [E|Ib]; auto.
          exfalso. apply (irreflexive a). apply transitive with b; auto. }
        subst b. f_equal. apply IH; auto. intros x; split; intros Hx.
        * destruct (proj1 (Hin x) (or_intror Hx)) as [E|]; auto. subst. exfalso. apply (irreflexive x); auto.
        * destruct (proj2 (Hin x) (or_intror Hx)) as [E|]; auto. subst. exfalso. apply (irreflexive x); auto.
  Qed.

  Variable less : A -> A -> bool.
  Hypothesis less_spec : forall x y, less x y = true <-> lt x y.
  Hypothesis total : forall x y, x = y \/ lt x y \/ lt y x.

  Fixpoint insert (x : A) (l : list A) : list A :=
    match l with
    | [] => [x]
    | y :: l' => if less y x then y :: insert x l' else x :: l
    end.

  Definition sort (l : list A) : list A := fold_right insert [] l.

  Lemma insert_permutes : forall x l, Permutation (x :: l) (insert x l).
  Proof.
    induction l as [|y l IH]; simpl; auto. destruct (less y x); auto.
    apply perm_trans with (y :: x :: l). apply perm_swap. auto.
  Qed.

  Lemma insert_sorted : forall x l, StronglySorted lt l -> ~ In x l -> StronglySorted lt (insert x l).
  Proof.
    induction l as [|y l IH]; intros Hs Hn; simpl.
    - constructor; constructor.
    - inversion Hs as [|? ? Hl Hy]; subst. destruct (less y x) eqn:E.
      + constructor. { apply IH; auto. intro; apply Hn; right; auto. }
        apply less_spec in E. rewrite Forall_forall in *. intros z Hz.
        apply (Permutation_in _ (Permutation_sym (insert_permutes x l))) in Hz. destruct Hz; subst; auto.
      + assert (lt x y) as Hxy.
        { destruct (total x y) as [->|[H|H]]; auto.
          - exfalso; apply Hn; left; auto.
          - apply less_spec in H. congruence. }
        constructor; auto. constructor; auto. rewrite Forall_forall in *.
        intros z Hz. apply transitive with y; auto.
  Qed.

  Lemma sort_permutes : forall l, Permutation l (sort l).
  Proof. induction l; simpl; auto. eapply perm_trans; [apply perm_skip; eassumption|apply insert_permutes]. Qed.

  Lemma sort_sorted : forall l, NoDup l -> StronglySorted lt (sort l).
  Proof.
    induction l as [|a l IH]; intros Hn; simpl. constructor.
    inversion Hn; subst. apply insert_sorted; auto.
    intro H. apply (Permutation_in _ (Permutation_sym (sort_permutes l))) in H. auto.
  Qed.
End Sorting.
Arguments insert {A}.
Arguments sort {A}.

(** * The canonical order *)

Section Canonical.
  (** What the id of a commit fixes: its past, its rank (each node checks it), and the heads of a checkpoint. *)
  Variable past : nat -> list nat.
  Variable rank : nat -> nat.
  Variable checkpoint : nat -> option (list nat).
  (** Void, by all that is here: a function of the set (Rules.v). *)
  Variable void : list nat -> nat -> bool.
  Definition same (S T : list nat) : Prop := forall x, In x S <-> In x T.
  Hypothesis void_same : forall S T x, same S T -> void S x = void T x.

  Definition mem (x : nat) (l : list nat) : bool := existsb (Nat.eqb x) l.
  Definition heads_eq (a b : option (list nat)) : bool :=
    match a, b with
    | Some h, Some k => if list_eq_dec Nat.eq_dec h k then true else false
    | _, _ => false
    end.
  (** The checkpoint [c] passes [x]: it is not void, does not have [x] in its past, and is no checkpoint of the same heads. *)
  Definition passes (S : list nat) (c x : nat) : bool :=
    negb (void S c) && negb (mem x (past c)) && negb (heads_eq (checkpoint c) (checkpoint x)).
  Definition head_sets (S : list nat) (x : nat) : list (list nat) :=
    flat_map (fun c => match checkpoint c with
                       | Some h => if passes S c x then [h] else []
                       | None => []
                       end) S.
  Definition passed (S : list nat) (x : nat) : nat :=
    length (nodup (list_eq_dec Nat.eq_dec) (head_sets S x)).

  Definition key (S : list nat) (x : nat) : nat * nat := (passed S x, rank x).
  Definition before (S : list nat) (x y : nat) : Prop :=
    passed S x < passed S y \/
    (passed S x = passed S y /\ (rank x < rank y \/ (rank x = rank y /\ x < y))).
  Definition beforeb (S : list nat) (x y : nat) : bool :=
    (passed S x <? passed S y) ||
    ((passed S x =? passed S y) && ((rank x <? rank y) || ((rank x =? rank y) && (x <? y)))).

  Lemma beforeb_spec : forall S x y, beforeb S x y = true <-> before S x y.
  Proof.
    intros. unfold beforeb, before.
    rewrite orb_true_iff, andb_true_iff, orb_true_iff, andb_true_iff.
    rewrite !Nat.ltb_lt, !Nat.eqb_eq. tauto.
  Qed.

  Definition timeline (S : list nat) : list nat := sort (beforeb S) (filter (fun x => negb (void S x)) S).

  Lemma head_sets_same : forall S T x, same S T -> forall h, In h (head_sets S x) <-> In h (head_sets T x).
  Proof.
    intros S T x E h. unfold head_sets. rewrite !in_flat_map.
    split; intros [c [Hc Hh]]; exists c; (split; [apply E; auto|]);
      destruct (checkpoint c) eqn:K; auto; unfold passes in *;
      [rewrite <- (void_same S T c E)|rewrite (void_same S T c E)]; auto.
  Qed.

  Lemma passed_same : forall S T x, same S T -> passed S x = passed T x.
  Proof.
    intros S T x E. unfold passed. apply Permutation_length. apply NoDup_Permutation; try apply NoDup_nodup.
    intros h. rewrite !nodup_In. apply head_sets_same; auto.
  Qed.

  Lemma before_same : forall S T x y, same S T -> before S x y <-> before T x y.
  Proof. intros S T x y E. unfold before. rewrite (passed_same S T x E), (passed_same S T y E). tauto. Qed.

  Lemma before_irreflexive : forall S x, ~ before S x x.
  Proof. unfold before; intros; lia. Qed.
  Lemma before_transitive : forall S x y z, before S x y -> before S y z -> before S x z.
  Proof. unfold before; intros; lia. Qed.
  Lemma before_total : forall S x y, x = y \/ before S x y \/ before S y x.
  Proof. unfold before; intros; lia. Qed.

  Lemma sorted_by : forall (P Q : nat -> nat -> Prop) l,
    (forall x y, P x y -> Q x y) -> StronglySorted P l -> StronglySorted Q l.
  Proof.
    intros P Q l H S. induction S as [|a l S IH F]; constructor; auto.
    apply Forall_impl with (P a); auto.
  Qed.

  Theorem timeline_is_a_function_of_the_set : forall S T,
    NoDup S -> NoDup T -> same S T -> timeline S = timeline T.
  Proof.
    intros S T HS HT E. apply sorted_unique with (lt := before S).
    - apply before_irreflexive.
    - apply before_transitive.
    - apply sort_sorted with (lt := before S); auto using before_total, before_irreflexive.
      + apply before_transitive.
      + apply beforeb_spec.
      + apply NoDup_filter; auto.
    - apply sorted_by with (before T). { intros; apply (before_same S T); auto. }
      apply sort_sorted with (lt := before T); auto using before_total, before_irreflexive.
      + apply before_transitive.
      + apply beforeb_spec.
      + apply NoDup_filter; auto.
    - intros x. unfold timeline.
      assert (forall U, In x (sort (beforeb U) (filter (fun x => negb (void U x)) U)) <->
                        In x U /\ negb (void U x) = true) as K.
      { intros U. transitivity (In x (filter (fun x => negb (void U x)) U)).
        - split; apply Permutation_in; [apply Permutation_sym|]; apply sort_permutes.
        - apply (filter_In (fun x => negb (void U x))). }
      rewrite !K. rewrite (void_same S T x E). rewrite (E x). tauto.
  Qed.

  Hypothesis past_closed : forall x y z, In y (past x) -> In z (past y) -> In z (past x).
  Hypothesis rank_grows : forall x p, In p (past x) -> rank p < rank x.
  Hypothesis heads_fix_past : forall c d h,
    checkpoint c = Some h -> checkpoint d = Some h -> forall x, In x (past c) <-> In x (past d).

  Theorem causes_come_first : forall S x p, In p (past x) -> before S p x.
  Proof.
    intros S x p Hp. pose proof (rank_grows x p Hp) as Hr.
    assert (passed S p <= passed S x) as Hc.
    { unfold passed. apply NoDup_incl_length. apply NoDup_nodup.
      intros h. rewrite !nodup_In. unfold head_sets. rewrite !in_flat_map.
      intros [c [Hc Hh]]. exists c; split; auto.
      destruct (checkpoint c) as [k|] eqn:K; auto.
      destruct (passes S c p) eqn:E; [|destruct Hh]. unfold passes in *.
      rewrite !andb_true_iff in E. destruct E as [[Ev Em] Eh].
      rewrite Ev; simpl.
      assert (mem p (past c) = false) as Hm by (destruct (mem p (past c)); auto; discriminate).
      assert (~ In p (past c)) as Hn.
      { intro I. unfold mem in Hm.
        assert (existsb (Nat.eqb p) (past c) = true) by (apply existsb_exists; exists p; split; auto; apply Nat.eqb_refl).
        congruence. }
      destruct (mem x (past c)) eqn:Mx.
      { exfalso. apply existsb_exists in Mx. destruct Mx as [y [Hy Ey]]. apply Nat.eqb_eq in Ey; subst y.
        apply Hn. apply past_closed with x; auto. }
      destruct (heads_eq (checkpoint c) (checkpoint x)) eqn:Hx; rewrite K in Hx.
      { exfalso. unfold heads_eq in Hx. destruct (checkpoint x) as [k'|] eqn:Kx; [|discriminate].
        destruct (list_eq_dec Nat.eq_dec k k') as [->|]; [|discriminate].
        apply Hn. apply (heads_fix_past c x k' K Kx). auto. }
      simpl. exact Hh. }
    unfold before. lia.
  Qed.
End Canonical.

(** * Eager timelines *)

Section Eager.
  (** Commits are names; an edge goes from a cause to an effect. *)
  Definition edge := (nat * nat)%type.
  Definition below (r : nat -> nat) (x y : nat) : Prop := r x < r y \/ (r x = r y /\ x < y).
  Definition belowb (r : nat -> nat) (x y : nat) : bool := (r x <? r y) || ((r x =? r y) && (x <? y)).
  Definition upd (r : nat -> nat) (c k : nat) : nat -> nat := fun x => if x =? c then k else r x.

  Lemma below_irreflexive : forall r x, ~ below r x x.
  Proof. unfold below; intros; lia. Qed.
  Lemma below_transitive : forall r x y z, below r x y -> below r y z -> below r x z.
  Proof. unfold below; intros; lia. Qed.
  Lemma below_total : forall r x y, x = y \/ below r x y \/ below r y x.
  Proof. unfold below; intros; lia. Qed.
  Lemma belowb_spec : forall r x y, belowb r x y = true <-> below r x y.
  Proof.
    intros. unfold belowb, below. rewrite orb_true_iff, andb_true_iff, !Nat.ltb_lt, Nat.eqb_eq. tauto.
  Qed.

  (** Ranks that respect edges; the longest paths are the least of these. *)
  Definition respects (E : list edge) (r : nat -> nat) : Prop := forall x y, In (x, y) E -> r x < r y.
  Definition least (E : list edge) (r : nat -> nat) : Prop :=
    respects E r /\ forall R, respects E R -> forall x, r x <= R x.

  Lemma least_unique : forall E r r', least E r -> least E r' -> forall x, r x = r' x.
  Proof. intros E r r' [H1 H2] [H3 H4] x. specialize (H2 r' H3 x). specialize (H4 r H1 x). lia. Qed.

  (** A wave towards the future: what is to get a rank of at least [k], taken in any order. *)
  Inductive wave (E : list edge) : list (nat * nat) -> (nat -> nat) -> (nat -> nat) -> Prop :=
  | wave_ends : forall r r', (forall x, r' x = r x) -> wave E [] r r'
  | wave_skips : forall w1 c k w2 r r', k <= r c ->
      wave E (w1 ++ w2) r r' -> wave E (w1 ++ (c, k) :: w2) r r'
  | wave_raises : forall w1 c k w2 r r', r c < k ->
      wave E (w1 ++ w2 ++ map (fun e => (snd e, S k)) (filter (fun e => fst e =? c) E)) (upd r c k) r' ->
      wave E (w1 ++ (c, k) :: w2) r r'.

  Lemma wave_grows : forall E w r r', wave E w r r' -> forall x, r x <= r' x.
  Proof.
    induction 1 as [r r' H|w1 c k w2 r r' H W IH|w1 c k w2 r r' H W IH]; intros x.
    - rewrite H; auto.
    - auto.
    - specialize (IH x). unfold upd in IH. destruct (x =? c) eqn:B; [apply Nat.eqb_eq in B; subst; lia|auto].
  Qed.

  Definition pending (E : list edge) (w : list (nat * nat)) (r : nat -> nat) : Prop :=
    forall x y, In (x, y) E -> r x < r y \/ exists k, In (y, k) w /\ r x < k.

  Lemma wave_respects : forall E w r r', (forall x, ~ In (x, x) E) -> wave E w r r' -> pending E w r -> respects E r'.
  Proof.
    intros E w r r' Irr W. induction W as [r r' H|w1 c k w2 r r' H W IH|w1 c k w2 r r' H W IH]; intros P.
    - intros x y I. destruct (P x y I) as [L|[k [[] _]]]. rewrite !H; auto.
    - apply IH. intros x y I. destruct (P x y I) as [L|[j [Hj L]]]; auto.
      apply in_app_or in Hj. destruct Hj as [Hj|[Ej|Hj]].
      + right; exists j; split; auto; apply in_or_app; auto.
      + inversion Ej; subst. left; lia.
      + right; exists j; split; auto; apply in_or_app; auto.
    - apply IH. intros x y I. unfold upd. destruct (x =? c) eqn:Ex.
      + apply Nat.eqb_eq in Ex; subst x. right. exists (S k). split; [|lia].
        apply in_or_app; right; apply in_or_app; right.
        apply in_map_iff. exists (c, y). split; auto. apply filter_In; split; auto. apply Nat.eqb_refl.
      + destruct (P x y I) as [L|[j [Hj L]]].
        * left. destruct (y =? c) eqn:Ey; auto. apply Nat.eqb_eq in Ey; subst; lia.
        * apply in_app_or in Hj. destruct Hj as [Hj|[Ej|Hj]].
          -- right; exists j; split; auto; apply in_or_app; auto.
          -- inversion Ej; subst. left. rewrite Nat.eqb_refl; auto.
          -- right; exists j; split; auto. apply in_or_app; right; apply in_or_app; auto.
  Qed.

  Lemma wave_least : forall E w r r' R, wave E w r r' -> respects E R ->
    (forall x, r x <= R x) -> (forall c k, In (c, k) w -> k <= R c) -> forall x, r' x <= R x.
  Proof.
    intros E w r r' R W HR. induction W as [r r' H|w1 c k w2 r r' H W IH|w1 c k w2 r r' H W IH]; intros L K x.
    - rewrite H; auto.
    - apply IH; auto. intros d j I. apply K. apply in_or_app. apply in_app_or in I. destruct I; auto. right; right; auto.
    - assert (k <= R c) as Kc by (apply K; apply in_or_app; right; left; auto).
      apply IH.
      + intros z. unfold upd. destruct (z =? c) eqn:B; auto. apply Nat.eqb_eq in B; subst; auto.
      + intros d j I. apply in_app_or in I. destruct I as [I|I]; [apply K; apply in_or_app; auto|].
        apply in_app_or in I. destruct I as [I|I]; [apply K; apply in_or_app; right; right; auto|].
        apply in_map_iff in I. destruct I as [[a b] [Eq I]]. simpl in Eq. inversion Eq; subst.
        apply filter_In in I. destruct I as [I B]. simpl in B. apply Nat.eqb_eq in B; subst a.
        specialize (HR c d I). lia.
  Qed.

  (** What the wave has reached makes way, from the last to the first: each rises past what is below it. *)
  Definition settle (r : nat -> nat) (reached : nat -> bool) (l : list nat) : list nat :=
    fold_right (fun x l' => if reached x then insert (belowb r) x l' else x :: l') [] l.

  (** Whatever was not reached stands before all that follows it. Those reached may stand anywhere. *)
  Fixpoint kept (r : nat -> nat) (reached : nat -> bool) (l : list nat) : Prop :=
    match l with
    | [] => True
    | x :: l' => (reached x = false -> Forall (below r x) l') /\ kept r reached l'
    end.

  Lemma settle_permutes : forall r v l, Permutation l (settle r v l).
  Proof.
    induction l as [|x l IH]; simpl; auto. destruct (v x); auto.
    eapply perm_trans; [apply perm_skip; eassumption|apply insert_permutes].
  Qed.

  Lemma settle_sorted : forall r v l, NoDup l -> kept r v l -> StronglySorted (below r) (settle r v l).
  Proof.
    induction l as [|x l IH]; intros N K; simpl. constructor.
    inversion N; subst. destruct K as [Kx Kl]. specialize (IH H2 Kl).
    destruct (v x) eqn:V.
    - apply insert_sorted with (lt := below r); auto using below_total.
      + apply below_transitive.
      + apply belowb_spec.
      + intro I. apply (Permutation_in _ (Permutation_sym (settle_permutes r v l))) in I. auto.
    - constructor; auto. rewrite Forall_forall. intros y Hy.
      apply (Permutation_in _ (Permutation_sym (settle_permutes r v l))) in Hy.
      specialize (Kx eq_refl). rewrite Forall_forall in Kx. auto.
  Qed.

  Lemma sorted_kept : forall r r' v l, StronglySorted (below r) l ->
    (forall x, r x <= r' x) -> (forall x, v x = false -> r' x = r x) -> kept r' v l.
  Proof.
    induction 1 as [|x l Hs IH Hx]; intros G U; simpl; auto. split; auto.
    intros V. rewrite Forall_forall in *. intros y Hy. specialize (Hx y Hy). specialize (G y).
    pose proof (U x V). unfold below in *. lia.
  Qed.

  (** Something reached may first go anywhere to the right past what is below it, or was reached too. *)
  Lemma jump_kept : forall r v a s b c, v s = true -> kept r v (a ++ s :: b ++ c) ->
    (forall y, In y b -> v y = false -> below r y s) -> kept r v (a ++ b ++ s :: c).
  Proof.
    induction a as [|x a IH]; intros s b c V K P; simpl in *.
    - destruct K as [_ K]. induction b as [|y b IHb]; simpl in *.
      + split; auto. congruence.
      + destruct K as [Ky K]. split.
        * intros W. specialize (Ky W). rewrite Forall_app in *. destruct Ky. split; auto.
        * apply IHb; auto.
    - destruct K as [Kx K]. split; auto. intros W. specialize (Kx W).
      rewrite Forall_forall in *. intros y Hy. apply Kx. rewrite !in_app_iff in *. simpl in *.
      rewrite in_app_iff in *. tauto.
  Qed.

  (** A step of an eager timeline: its list, its ranks, its edges. *)
  Record state := State { shown : list nat; ranks : nat -> nat; edges : list edge }.

  Inductive step : state -> state -> Prop :=
  | arrives : forall s x, ~ In x (shown s) -> ranks s x = 0 -> (forall y, ~ In (x, y) (edges s) /\ ~ In (y, x) (edges s)) ->
      step s (State (insert (belowb (ranks s)) x (shown s)) (ranks s) (edges s))
  | learns : forall s c e r' reached l',
      c <> e -> In c (shown s) -> In e (shown s) ->
      wave ((c, e) :: edges s) [(e, S (ranks s c))] (ranks s) r' ->
      (forall x, reached x = false -> r' x = ranks s x) ->
      Permutation (shown s) l' -> kept r' reached l' ->
      step s (State (settle r' reached l') r' ((c, e) :: edges s)).

  Definition invariant (s : state) : Prop :=
    NoDup (shown s) /\ StronglySorted (below (ranks s)) (shown s) /\ least (edges s) (ranks s) /\
    (forall x, ~ In (x, x) (edges s)).

  Lemma step_keeps : forall s s', step s s' -> invariant s -> invariant s'.
  Proof.
    intros s s' H [N [So [[L1 L2] I]]]. destruct H as [s x Hx R F|s c e r' v l' D Hc He W U P K].
    - unfold invariant; simpl. repeat split; auto.
      + eapply Permutation_NoDup. apply insert_permutes. constructor; auto.
      + apply insert_sorted with (lt := below (ranks s)); auto using below_total.
        * apply below_transitive.
        * apply belowb_spec.
    - assert (NoDup l') as N' by (eapply Permutation_NoDup; eauto).
      assert (forall x, ~ In (x, x) ((c, e) :: edges s)) as I'.
      { intros x [E|E]; [inversion E; congruence|apply (I x E)]. }
      unfold invariant; simpl. repeat split; auto.
      + eapply Permutation_NoDup. apply settle_permutes. auto.
      + apply settle_sorted; auto.
      + eapply wave_respects; eauto. intros x y J. destruct J as [E|J].
        * inversion E; subst. right. exists (S (ranks s x)). split; [left; auto|lia].
        * left. apply L1; auto.
      + intros R HR x. eapply wave_least; eauto.
        * apply L2. intros a b J. apply HR. right; auto.
        * intros d k [E|[]]. inversion E; subst. pose proof (HR c d (or_introl eq_refl)).
          assert (ranks s c <= R c) by (apply L2; intros a b J; apply HR; right; auto). lia.
  Qed.

  Inductive run : state -> state -> Prop :=
  | rests : forall s, run s s
  | goes : forall s s' s'', step s s' -> run s' s'' -> run s s''.

  (** However commits arrived and edges became known, the list is the one sorted by longest path, then name. *)
  Theorem eager_ends_in_canonical_order : forall s rank l,
    run (State [] (fun _ => 0) []) s -> least (edges s) rank ->
    StronglySorted (below rank) l -> (forall x, In x l <-> In x (shown s)) -> shown s = l.
  Proof.
    intros s rank l R Lr Sl E.
    assert (invariant s) as [_ [So [L _]]].
    { remember (State [] (fun _ => 0) []) as s0 eqn:E0. assert (invariant s0) as I0.
      { rewrite E0. unfold invariant, least, respects; simpl.
        split; [constructor|]. split; [constructor|]. split; [split|]; intros; try lia; tauto. }
      clear E0. induction R; auto. apply IHR; auto. eapply step_keeps; eauto. }
    apply sorted_unique with (lt := below rank); auto.
    - apply below_irreflexive.
    - apply below_transitive.
    - assert (forall x, ranks s x = rank x) as Eq by (apply least_unique with (edges s); auto).
      apply sorted_by with (below (ranks s)); auto. intros x y B. unfold below in *. rewrite <- !Eq. exact B.
    - intros x. rewrite E. tauto.
  Qed.

  (** After each raise the published list moves the effect behind its cause, or lets it rise: both are [jump_kept]. *)
  Theorem published_moves_are_steps : forall r r' v a e b c, StronglySorted (below r) (a ++ e :: b ++ c) ->
    (forall x, r x <= r' x) -> (forall x, v x = false -> r' x = r x) -> v e = true ->
    (forall y, In y b -> v y = false -> below r' y e) ->
    kept r' v (a ++ b ++ e :: c).
  Proof. intros. apply jump_kept; auto. eapply sorted_kept; eauto. Qed.
End Eager.

(** * The fewest edits *)

Section Edits.
  Inductive edit : list nat -> list nat -> Prop :=
  | inserts : forall x a b, ~ In x (a ++ b) -> edit (a ++ b) (a ++ x :: b)
  | moves : forall x a b c d, a ++ b = c ++ d -> edit (a ++ x :: b) (c ++ x :: d)
  | removes : forall x a b, edit (a ++ x :: b) (a ++ b).

  Inductive script : nat -> list nat -> list nat -> Prop :=
  | done : forall l, script 0 l l
  | then_ : forall n l l' l'', edit l l' -> script n l' l'' -> script (S n) l l''.

  Inductive sub : list nat -> list nat -> Prop :=
  | sub_nil : forall l, sub [] l
  | sub_take : forall x c l, sub c l -> sub (x :: c) (x :: l)
  | sub_skip : forall x c l, sub c l -> sub c (x :: l).

  Lemma sub_refl : forall l, sub l l.
  Proof. induction l; constructor; auto. Qed.

  Lemma sub_length : forall c l, sub c l -> length c <= length l.
  Proof. induction 1; simpl; lia. Qed.

  Lemma sub_app : forall a b c d, sub a b -> sub c d -> sub (a ++ c) (b ++ d).
  Proof.
    induction 1; simpl; intros; try (constructor; auto; fail).
    induction l; simpl; auto. constructor; auto.
  Qed.

  Lemma sub_split : forall c a b, sub c (a ++ b) -> exists c1 c2, c = c1 ++ c2 /\ sub c1 a /\ sub c2 b.
  Proof.
    intros c a. revert c. induction a as [|x a IH]; simpl; intros c b H.
    - exists [], c. repeat split; auto. constructor.
    - inversion H; subst.
      + exists [], []. repeat split; constructor.
      + destruct (IH _ _ H2) as [c1 [c2 [E [S1 S2]]]]; subst. exists (x :: c1), c2. repeat split; auto. constructor; auto.
      + destruct (IH _ _ H2) as [c1 [c2 [E [S1 S2]]]]; subst. exists c1, c2. repeat split; auto. constructor; auto.
  Qed.

  Lemma sub_in : forall c l x, sub c l -> In x c -> In x l.
  Proof. induction 1; simpl; intros; intuition. Qed.

  Lemma sub_nodup : forall c l, sub c l -> NoDup l -> NoDup c.
  Proof.
    induction 1; intros N; try constructor; inversion N; subst; auto.
    intro I. apply (sub_in _ _ _ H) in I. auto.
  Qed.

  (** Without one element, at most one is lost of a common part. *)
  Lemma sub_without : forall c a x b, sub c (a ++ x :: b) ->
    exists d, sub d c /\ sub d (a ++ b) /\ length c <= S (length d).
  Proof.
    intros c a x b H. destruct (sub_split _ _ _ H) as [c1 [c2 [E [S1 S2]]]]; subst.
    inversion S2; subst.
    - exists (c1 ++ []). split; [apply sub_refl|]. split; [apply sub_app; auto; constructor|lia].
    - exists (c1 ++ c). split; [|split].
      + apply sub_app. apply sub_refl. constructor. apply sub_refl.
      + apply sub_app; auto.
      + rewrite !app_length. simpl. lia.
    - exists (c1 ++ c2). split; [apply sub_refl|]. split; [apply sub_app; auto|lia].
  Qed.

  Lemma sub_trans : forall c b, sub c b -> forall a, sub b a -> sub c a.
  Proof.
    intros c b H a K. revert c H. induction K; intros c' H.
    - inversion H; subst. constructor.
    - inversion H; subst; constructor; auto.
    - constructor; auto.
  Qed.

  Lemma sub_with : forall c a x b, sub c (a ++ b) -> sub c (a ++ x :: b).
  Proof.
    intros c a x b H. destruct (sub_split _ _ _ H) as [c1 [c2 [E [S1 S2]]]]; subst.
    apply sub_app; auto. constructor; auto.
  Qed.

  (** Lower bound: a script of [n] edits leaves a common part, outside which at most [n] elements of the result stand. *)
  Theorem net_is_least : forall n a b, script n a b ->
    exists c, sub c a /\ sub c b /\ length b <= length c + n.
  Proof.
    induction 1 as [l|n l l' l'' E H [c [S1 [S2 L]]]].
    - exists l. split; [apply sub_refl|]. split; [apply sub_refl|lia].
    - destruct E as [x a b N|x a b p q Eq|x a b].
      + destruct (sub_without _ _ _ _ S1) as [d [D1 [D2 D3]]].
        exists d. split; [exact D2|]. split; [|lia]. apply sub_trans with c; assumption.
      + destruct (sub_without _ _ _ _ S1) as [d [D1 [D2 D3]]].
        exists d. split; [apply sub_with; rewrite Eq; exact D2|]. split; [apply sub_trans with c; assumption|lia].
      + exists c. split; [apply sub_with; exact S1|]. split; [exact S2|lia].
  Qed.

  Lemma sub_full : forall c l, sub c l -> length c = length l -> c = l.
  Proof.
    induction 1; simpl; intros E.
    - destruct l; auto; discriminate.
    - f_equal; auto.
    - apply sub_length in H. lia.
  Qed.

  Lemma sub_misses : forall c b, sub c b -> length c < length b ->
    exists c1 c2 b1 b2 x, c = c1 ++ c2 /\ b = b1 ++ x :: b2 /\ sub c1 b1 /\ sub c2 b2.
  Proof.
    induction 1 as [l|x c l H IH|x c l H IH]; simpl; intros L.
    - destruct l as [|x l]; simpl in L; [lia|]. exists [], [], [], l, x. repeat split; constructor.
    - destruct IH as [c1 [c2 [b1 [b2 [y [E1 [E2 [S1 S2]]]]]]]]; [lia|subst].
      exists (x :: c1), c2, (x :: b1), b2, y. repeat split; auto. constructor; auto.
    - exists [], c, [], l, x. repeat split; auto. constructor.
  Qed.

  (** Where a part is cut, the whole can be cut. *)
  Lemma sub_cut : forall l c1 c2, sub (c1 ++ c2) l -> exists u v, l = u ++ v /\ sub c1 u /\ sub c2 v.
  Proof.
    induction l as [|y l IH]; intros c1 c2 H.
    - exists [], []. inversion H as [k E1 E2| |]. destruct c1; [|discriminate]. simpl in *. subst.
      split; [reflexivity|]. split; constructor.
    - destruct c1 as [|z c1].
      + exists [], (y :: l). split; [reflexivity|]. split; [constructor|exact H].
      + simpl in H. inversion H as [|? ? ? H1|? ? ? H1]; subst.
        * destruct (IH c1 c2 H1) as [u [v [E [A B]]]]. exists (y :: u), v. subst l.
          split; [reflexivity|]. split; [constructor; exact A|exact B].
        * destruct (IH (z :: c1) c2 H1) as [u [v [E [A B]]]]. exists (y :: u), v. subst l.
          split; [reflexivity|]. split; [constructor; exact A|exact B].
  Qed.

  (** A part that does not have [x] is a part without [x], too. *)
  Lemma sub_avoids : forall c a x b, sub c (a ++ x :: b) -> ~ In x c -> sub c (a ++ b).
  Proof.
    intros c a x b H N. destruct (sub_split _ _ _ H) as [c1 [c2 [E [S1 S2]]]]; subst.
    inversion S2; subst; auto using sub_app, sub_nil.
    exfalso. apply N. apply in_or_app. right; left; auto.
  Qed.

  (** Upper bound: where nothing is taken away, what stands outside a common part is inserted or moved, one edit each. *)
  Theorem net_is_reached : forall n a b c, NoDup a -> NoDup b -> incl a b -> sub c a -> sub c b ->
    length b = length c + n -> script n a b.
  Proof.
    induction n as [|n IH]; intros a b c Na Nb I Ca Cb L.
    - assert (c = b) by (apply sub_full; auto; lia). subst c.
      assert (b = a) by (apply sub_full; auto; pose proof (sub_length _ _ Ca); pose proof (NoDup_incl_length Na I); lia).
      subst. constructor.
    - destruct (sub_misses c b Cb) as [c1 [c2 [b1 [b2 [x [E1 [E2 [S1 S2]]]]]]]]; [lia|].
      assert (~ In x (b1 ++ b2)) as Nx by (subst b; apply NoDup_remove_2; auto).
      assert (~ In x c) as Nc.
      { subst c. intro J. apply Nx. apply in_or_app. apply in_app_or in J. destruct J; [left|right]; eapply sub_in; eauto. }
      assert (sub (c1 ++ x :: c2) b) as Cb' by (subst b; apply sub_app; auto; constructor; auto).
      destruct (in_dec Nat.eq_dec x a) as [Ix|Ix].
      + destruct (in_split _ _ Ix) as [p [q E]]; subst a.
        pose proof (sub_avoids _ _ _ _ Ca Nc) as Ca'. rewrite E1 in Ca'.
        destruct (sub_cut _ _ _ Ca') as [u [v [Eu [U V]]]].
        apply then_ with (u ++ x :: v). { constructor; auto. }
        assert (Permutation (p ++ x :: q) (u ++ x :: v)) as P.
        { eapply perm_trans; [apply Permutation_sym; apply Permutation_middle|].
          rewrite Eu. apply Permutation_middle. }
        apply IH with (c1 ++ x :: c2); auto.
        * eapply Permutation_NoDup; eauto.
        * intros y Hy. apply I. eapply Permutation_in; [apply Permutation_sym; eauto|auto].
        * apply sub_app; auto. constructor; auto.
        * subst c. rewrite app_length in *. simpl. lia.
      + subst c.
        destruct (sub_cut _ _ _ Ca) as [u [v [Eu [U V]]]].
        subst a. apply then_ with (u ++ x :: v). { constructor; auto. }
        apply IH with (c1 ++ x :: c2); auto.
        * apply Permutation_NoDup with (x :: u ++ v); [apply Permutation_middle|constructor; auto].
        * intros y Hy. apply in_app_or in Hy. destruct Hy as [Hy|[Hy|Hy]].
          -- apply I. apply in_or_app; auto.
          -- subst y. subst b. apply in_or_app. right; left; auto.
          -- apply I. apply in_or_app; auto.
        * apply sub_app; auto. constructor; auto.
        * rewrite app_length in *. simpl. lia.
  Qed.
End Edits.

(** The length of a longest common part, and the edits of "net": the elements of the result outside it. *)
Fixpoint longest (a : list nat) : list nat -> nat :=
  match a with
  | [] => fun _ => 0
  | x :: a' =>
      fix in_b (b : list nat) : nat :=
        match b with
        | [] => 0
        | y :: b' => if x =? y then S (longest a' b') else Nat.max (longest a' b) (in_b b')
        end
  end.
Definition net (a b : list nat) : nat := length b - longest a b.

Lemma longest_is_common : forall a b, exists c, sub c a /\ sub c b /\ length c = longest a b.
Proof.
  induction a as [|x a IHa]; intros b.
  - exists []. repeat split; constructor.
  - induction b as [|y b IHb].
    + exists []. repeat split; constructor.
    + simpl. destruct (x =? y) eqn:E.
      * apply Nat.eqb_eq in E; subst. destruct (IHa b) as [c [A [B L]]].
        exists (y :: c). repeat split; simpl; auto; constructor; auto.
      * destruct (Nat.max_dec (longest a (y :: b)) (longest (x :: a) b)) as [M|M]; simpl in M; rewrite M.
        -- destruct (IHa (y :: b)) as [c [A [B L]]]. exists c. repeat split; auto. constructor; auto.
        -- destruct IHb as [c [A [B L]]]. exists c. repeat split; auto. constructor; auto.
Qed.

Lemma sub_tail : forall x c l, sub (x :: c) l -> sub c l.
Proof. intros x c l H. apply sub_trans with (x :: c); auto. constructor. apply sub_refl. Qed.

Lemma longest_is_longest : forall a b c, sub c a -> sub c b -> length c <= longest a b.
Proof.
  induction a as [|x a IHa]; intros b c A B.
  - inversion A; subst; simpl; lia.
  - revert c A B. induction b as [|y b IHb]; intros c A B.
    + inversion B; subst; simpl; lia.
    + simpl. destruct (x =? y) eqn:E.
      * apply Nat.eqb_eq in E; subst y.
        destruct c as [|z c]; simpl; [lia|]. apply le_n_S. apply IHa.
        -- inversion A; subst; auto. apply sub_tail in H1. auto.
        -- inversion B; subst; auto. apply sub_tail in H1. auto.
      * inversion A as [|? ? ? Sa|? ? ? Sa]; subst.
        -- simpl; lia.
        -- assert (sub (x :: c0) b) as Sb.
           { inversion B; subst; auto. rewrite Nat.eqb_refl in E. discriminate. }
           specialize (IHb (x :: c0) A Sb). simpl in *. lia.
        -- specialize (IHa (y :: b) c Sa B). lia.
Qed.

(** Theorem (f): [net] is the length of a shortest script, where nothing is taken away. *)
Theorem net_edits_are_least : forall a b, NoDup a -> NoDup b -> incl a b ->
  script (net a b) a b /\ forall n, script n a b -> net a b <= n.
Proof.
  intros a b Na Nb I. destruct (longest_is_common a b) as [c [A [B L]]].
  pose proof (sub_length _ _ B) as Lb. split.
  - apply net_is_reached with c; auto. unfold net. lia.
  - intros n H. destruct (net_is_least _ _ _ H) as [d [D1 [D2 D3]]].
    pose proof (longest_is_longest a b d D1 D2). unfold net. lia.
Qed.
