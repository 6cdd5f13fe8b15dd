(** Which operations count, and who holds which right, is a function of the set of operations (theorem a).

    - [holds_same]: of two lists with the same operations the answers are the same, for any fuel.
    - [enough_fuel]: with the fuel of Rules.v or more, the answer is that of the rules' own equations ([fixed_point]):
      each question of R2 to R6 leads to smaller ones, so the equations have one solution ([one_solution]).
    - [admitted_sets_have_one_answer]: what M admits is of the form that this asks for. *)

From Coq Require Import List Arith Lia Bool.
From Proof Require Import Rules.
Import ListNotations.

Lemma some_spec : forall A (f : A -> bool) l, some f l = true <-> exists x, In x l /\ f x = true.
Proof.
  induction l as [|x l IH]; simpl.
  - split; [discriminate|intros [x [[] _]]].
  - destruct (f x) eqn:E.
    + split; auto. intros _. exists x; auto.
    + rewrite IH. split.
      * intros [y [I Y]]. exists y; auto.
      * intros [y [[->|I] Y]]; [congruence|exists y; auto].
Qed.

Lemma some_same : forall A (f g : A -> bool) l l', (forall x, In x l <-> In x l') ->
  (forall x, In x l -> f x = g x) -> some f l = some g l'.
Proof.
  intros A f g l l' E H.
  destruct (some f l) eqn:F; destruct (some g l') eqn:G; auto.
  - apply some_spec in F. destruct F as [x [I X]].
    assert (some g l' = true) by (apply some_spec; exists x; split; [apply E; auto|rewrite <- H; auto]). congruence.
  - apply some_spec in G. destruct G as [x [I X]].
    assert (some f l = true) by (apply some_spec; exists x; split; [apply E; auto|rewrite H; auto; apply E; auto]).
    congruence.
Qed.

Lemma some_ext : forall A (f g : A -> bool) l, (forall x, In x l -> f x = g x) -> some f l = some g l.
Proof. intros. apply some_same; auto. tauto. Qed.

Lemma every_ext : forall A (f g : A -> bool) l, (forall x, In x l -> f x = g x) -> every f l = every g l.
Proof. intros. unfold every. f_equal. apply some_ext. intros. rewrite H; auto. Qed.

Lemma filter_length_ext : forall A (f g : A -> bool) l, (forall x, In x l -> f x = g x) ->
  length (filter f l) = length (filter g l).
Proof. intros. f_equal. apply filter_ext_in. auto. Qed.

(** * Invariance: sets, not lists *)

Definition same (W V : list entry) : Prop := forall e, In e W <-> In e V.
Definition alike (x y : act) : Prop :=
  who x = who y /\ same (follows x) (follows y) /\ (forall m, known x m = known y m) /\ removal x = removal y.

Lemma alike_refl : forall x, alike x x.
Proof. intros x. repeat split; auto. Qed.

Definition agree (h k : act -> right -> option right -> bool) : Prop :=
  forall x y r b, alike x y -> h x r b = k y r b.

Lemma acts_same : forall h k e f, agree h k -> acts h e f = acts k e f.
Proof. intros. unfold acts. apply some_ext. intros a _. destruct (f a); auto. apply H. apply alike_refl. Qed.

Lemma stands_same : forall h k e b, agree h k -> stands h e b = stands k e b.
Proof.
  intros. unfold stands, held_by_some. destruct (needs e =? 0); auto.
  apply some_ext. intros r _. apply H. apply alike_refl.
Qed.

Lemma counts_by_same : forall W V h k e b, same W V -> agree h k -> counts_by W h e b = counts_by V k e b.
Proof.
  intros W V h k e b E H. unfold counts_by. destruct (does e); try (apply stands_same; assumption).
  destruct (invitation_of e) as [inv|]; auto. rewrite (stands_same h k inv b H).
  destruct (stands k inv b); auto. f_equal. apply some_same; auto. intros v _.
  destruct (revokes v invitation); auto. destruct (negb (precedes v e)); auto. destruct (negb (precedes e v)); auto.
  apply acts_same; auto.
Qed.

Lemma within_same : forall e W V, same W V -> within e W = within e V.
Proof. intros. unfold within. apply some_same; auto. Qed.

Lemma takes_same : forall h k m x y r b, agree h k -> alike x y -> takes h m x r b = takes k m y r b.
Proof.
  intros h k m x y r b H [A [B [C D]]]. unfold takes. destruct (does m); auto.
  rewrite A, C. destruct (user =? who y); auto. destruct (level <? snd r); auto.
  destruct (negb (precedes m (fst r))); auto. destruct (negb (known y m)); auto.
  destruct (is_leave m). apply within_same; auto. apply acts_same; auto.
Qed.

Lemma holds_by_same : forall W V h k x y r b, same W V -> agree h k -> alike x y ->
  holds_by W h x r b = holds_by V k y r b.
Proof.
  intros W V h k x y r b E H A. unfold holds_by.
  rewrite (counts_by_same W V h k (fst r) b E H). destruct (counts_by V k (fst r) b); auto.
  assert (some (fun m => takes h m x r b) W = some (fun m => takes k m y r b) V) as T.
  { apply some_same; auto. intros m _. apply takes_same; auto. }
  rewrite T. destruct (is_quorum (fst r) ||| negb (some (fun m => takes k m y r b) V)); auto.
  unfold approved. destruct A as [_ [_ [_ ->]]]. destruct (removal y); auto.
  apply every_ext. intros ask _. f_equal. apply filter_length_ext. intros. apply counts_by_same; auto.
Qed.

Theorem holds_same : forall n W V x y r b, same W V -> alike x y -> holds n W x r b = holds n V y r b.
Proof.
  induction n as [|n IH]; intros; simpl; auto. apply holds_by_same; auto. intros x' y' r' b' A. apply IH; auto.
Qed.

Lemma list_max_same : forall l l', (forall x : nat, In x l <-> In x l') -> list_max l = list_max l'.
Proof.
  assert (forall l l' : list nat, incl l l' -> list_max l <= list_max l') as M.
  { intros l l' I. apply list_max_le. rewrite Forall_forall. intros x Hx. apply I in Hx.
    pose proof (proj1 (list_max_le l' (list_max l')) (le_n _)) as F. rewrite Forall_forall in F. auto. }
  intros l l' E. apply Nat.le_antisymm; apply M; intros x Hx; apply E; auto.
Qed.

Lemma size_same : forall W V, same W V -> size W = size V.
Proof.
  intros W V E. unfold size. f_equal. apply list_max_same.
  intros x. rewrite !in_map_iff. split; intros [e [H I]]; exists e; split; auto; apply E; auto.
Qed.

(** Theorem (a): what counts, and what each user holds, are functions of the set. *)
Theorem counts_is_a_function_of_the_set : forall W V e, same W V -> counts W e = counts V e.
Proof.
  intros W V e E. unfold counts, fuel. rewrite (size_same W V E). apply counts_by_same; auto.
  intros x y r b A. apply holds_same; auto.
Qed.

Lemma after_alike : forall W V u, same W V -> alike (after W u) (after V u).
Proof. intros. unfold after. repeat split; simpl; auto; apply H. Qed.

Lemma rights_of_same : forall W V u l r, same W V ->
  In r (rights_of (after W u) l) <-> In r (rights_of (after V u) l).
Proof.
  intros. unfold rights_of; simpl. rewrite !in_flat_map.
  split; intros [c [I J]]; exists c; split; auto; apply H; auto.
Qed.

Theorem members_are_a_function_of_the_set : forall W V u, same W V -> level W u = level V u.
Proof.
  intros W V u E. assert (forall l, holds_level W u l = holds_level V u l) as H.
  { intros l. unfold holds_level, holds_in, fuel. rewrite (size_same W V E). apply some_same.
    - intros r. apply rights_of_same; auto.
    - intros r _. destruct (snd r =? l); auto. apply holds_same; auto. apply after_alike; auto. }
  unfold level. simpl. rewrite !H. reflexivity.
Qed.

(** * One answer: every question leads to smaller ones *)

(** What M and the way of numbering give: [admitted_is_sound]. *)
Definition sound (e : entry) : Prop :=
  (forall c, In c (past e) -> num c < num e) /\
  (forall u, gives e u <= OWNER) /\
  (forall u l, does e = Grant u l -> l <= needs e) /\
  (is_quorum e = true -> OWNER <= needs e) /\
  (forall l u lt, does e = Invite l u lt -> ADMIN <= needs e) /\
  (forall i, does e = Revoke i -> ADMIN <= needs e) /\
  (forall f, does e = Found f -> needs e = 0) /\
  (forall q, In q (quorums e) -> In q (past e) /\ is_quorum q = true) /\
  (forall t l a, In (t, l) (asks e) -> In a l -> In a (past e) /\ exists p, does a = Approve p).

(** All that a set leads to: its operations and their pasts. *)
Inductive reaches (W : list entry) : entry -> Prop :=
| itself : forall e, In e W -> reaches W e
| its_past : forall e c, reaches W e -> In c (past e) -> reaches W c.

Section OneAnswer.
  Variable W : list entry.
  Hypothesis all_sound : forall e, reaches W e -> sound e.
  Let N := size W.

  Lemma numbers_small : forall e, reaches W e -> num e < N.
  Proof.
    induction 1 as [e I|e c R IH I].
    - unfold N, size. pose proof (proj1 (list_max_le (map num W) _) (le_n _)) as F.
      rewrite Forall_forall in F. specialize (F (num e) (in_map num _ _ I)). lia.
    - destruct (all_sound e R) as [P _]. specialize (P c I). lia.
  Qed.

  Definition weight (r : right) : nat := (OWNER - snd r) * N + num (fst r).
  Definition K : nat := 6 * N + 1.
  Definition measure (r : right) (b : option right) : nat :=
    match b with None => weight r * K + (K - 1) | Some s => weight s * K + weight r end.

  (** A right that the rules ask about: of a credential that is here, and that gives it. *)
  Definition proper (r : right) : Prop :=
    reaches W (fst r) /\ 1 <= snd r /\
    ((exists u, snd r <= gives (fst r) u) \/ (is_quorum (fst r) = true /\ snd r = OWNER)).
  Definition question (x : act) (r : right) (b : option right) : Prop :=
    proper r /\
    match b with None => True | Some s => proper s end /\
    match removal x with None => True | Some e => reaches W e /\ b = None end.

  Lemma proper_level : forall r, proper r -> snd r <= OWNER.
  Proof.
    intros r [R [_ [[u G]|[_ ->]]]]; auto. destruct (all_sound _ R) as [_ [M _]]. specialize (M u). lia.
  Qed.

  Lemma weight_small : forall r, proper r -> weight r + 2 <= K.
  Proof.
    intros r P. destruct P as [R _]. pose proof (numbers_small _ R). unfold weight, K, OWNER.
    assert ((5 - snd r) * N <= 5 * N) by (apply Nat.mul_le_mono_r; lia). lia.
  Qed.

  Lemma higher_weighs_less : forall a r, proper a -> snd r < snd a -> weight a < weight r.
  Proof.
    intros a r P L. pose proof (proper_level a P). destruct P as [R _]. pose proof (numbers_small _ R).
    unfold weight, OWNER in *.
    assert ((5 - snd r) * N = (5 - snd a) * N + (snd a - snd r) * N) as ->.
    { rewrite <- Nat.mul_add_distr_r. f_equal. lia. }
    assert (1 * N <= (snd a - snd r) * N) by (apply Nat.mul_le_mono_r; lia). lia.
  Qed.

  Lemma earlier_weighs_less : forall a r, proper a -> snd r <= snd a -> num (fst a) < num (fst r) -> weight a < weight r.
  Proof.
    intros a r P L M. destruct (Nat.eq_dec (snd r) (snd a)) as [E|E].
    - unfold weight. rewrite E. lia.
    - apply higher_weighs_less; auto. lia.
  Qed.

  Lemma within_In : forall e l, within e l = true -> exists o, In o l /\ num o = num e.
  Proof. intros e l H. apply some_spec in H. destruct H as [o [I E]]. apply Nat.eqb_eq in E. eauto. Qed.

  Lemma senior_weighs_less : forall a r, proper a -> proper r -> senior a r = true -> weight a < weight r.
  Proof.
    intros a r Pa Pr S. unfold senior in S. destruct (snd r <? snd a) eqn:L.
    - apply Nat.ltb_lt in L. apply higher_weighs_less; auto.
    - destruct (snd a =? snd r) eqn:E; [|discriminate]. apply Nat.eqb_eq in E.
      apply within_In in S. destruct S as [o [I J]]. destruct Pr as [Rr _].
      destruct (all_sound _ Rr) as [B _]. specialize (B o I). apply earlier_weighs_less; auto; lia.
  Qed.

  (** Rights that suffice are proper; their credentials lie in the past, and they have the level that is needed. *)
  Lemma rights_spec : forall e a, reaches W e -> In a (rights e) ->
    proper a /\ In (fst a) (past e) /\ (needs e <= snd a \/ snd a = OWNER).
  Proof.
    intros e [c l] R I. unfold rights in I. apply in_app_or in I. destruct I as [I|I].
    - unfold rights_of in I. apply in_flat_map in I. destruct I as [c' [Ic J]]. apply in_map_iff in J.
      destruct J as [l' [E J]]. inversion E; subst. unfold levels in J. apply in_seq in J.
      change (who (deed_of e)) with (author e) in J. change (follows (deed_of e)) with (past e) in Ic.
      assert (1 <= l /\ needs e <= l /\ l <= gives c (author e)) as [L1 [L2 L3]] by lia. clear J. simpl in *.
      split; [|split; [auto|left; lia]]. split; [|split]; simpl.
      + eapply its_past; eauto.
      + lia.
      + left. exists (author e). lia.
    - apply in_map_iff in I. destruct I as [q [E I]]. inversion E; subst. simpl.
      destruct (all_sound _ R) as [_ [_ [_ [_ [_ [_ [_ [Q _]]]]]]]]. destruct (Q c I) as [Q1 Q2].
      split; [|split; auto]. split; [|split]; simpl; auto.
      + eapply its_past; eauto.
      + unfold OWNER; lia.
  Qed.

  Definition agree_below (n : nat) (h k : act -> right -> option right -> bool) : Prop :=
    forall x r b, question x r b -> measure r b < n -> h x r b = k x r b.

  Section Agree.
    Variable n : nat.
    Variables h k : act -> right -> option right -> bool.
    Hypothesis A : agree_below n h k.

    (** Whoever acts by rights that weigh less than [s] is asked a smaller question than all about [s]. *)
    Lemma acts_agree : forall e f s, reaches W e ->
      (forall a, proper a -> In a (rights e) -> f a = true -> weight a < weight s) -> weight s * K <= n ->
      acts h e f = acts k e f.
    Proof.
      intros e f s R F L. unfold acts. apply some_ext. intros a I.
      destruct (rights_spec e a R I) as [P _]. destruct (f a) eqn:E; auto.
      specialize (F a P I E). pose proof (weight_small a P).
      apply A.
      - split; auto. split; simpl; auto. destruct (does e); simpl; auto.
      - simpl. assert (S (weight a) * K <= weight s * K) by (apply Nat.mul_le_mono_r; lia). simpl in *. lia.
    Qed.

    Lemma stands_agree : forall e b, reaches W e -> (forall u l, does e <> Remove u l) ->
      match b with None => True | Some s => proper s end ->
      (forall a, proper a -> In a (rights e) -> measure a b < n) -> stands h e b = stands k e b.
    Proof.
      intros e b R D B M. unfold stands, held_by_some. destruct (needs e =? 0); auto.
      apply some_ext. intros a I. destruct (rights_spec e a R I) as [P _]. apply A; auto.
      split; auto. split; auto. unfold deed_of; simpl. destruct (does e) eqn:E; auto. exfalso. eapply D; eauto.
    Qed.

    Lemma invitation_spec : forall e inv, invitation_of e = Some inv ->
      In inv (past e) /\ exists l u lt, does inv = Invite l u lt.
    Proof.
      intros e inv H. unfold invitation_of in H. destruct (does e); try discriminate.
      destruct (lookup invitation (past e)) as [o|] eqn:F; try discriminate.
      destruct (does o) eqn:D; try discriminate. inversion H; subst.
      split; [|eauto]. unfold lookup in F. apply find_some in F. tauto.
    Qed.

    (** A credential counts by smaller questions than those about the rights that it gives. *)
    Lemma credential_agrees : forall r b, proper r -> match b with None => True | Some s => proper s end ->
      measure r b <= n -> counts_by W h (fst r) b = counts_by W k (fst r) b.
    Proof.
      intros r b P B M. pose proof P as [R [L1 G]].
      assert (forall a, proper a -> weight a < weight r -> measure a b < n) as Less.
      { intros a Pa Lw. unfold measure in *. destruct b as [s|].
        - lia.
        - assert (S (weight a) * K <= weight r * K) by (apply Nat.mul_le_mono_r; lia). simpl in *. lia. }
      destruct (all_sound _ R) as [Past [Le [Gr [Qu [_ [_ [Fo [_ _]]]]]]]].
      assert ((forall i, does (fst r) <> Join i) -> stands h (fst r) b = stands k (fst r) b) as Plain.
      { intros NJ. unfold stands at 1 2. destruct (needs (fst r) =? 0) eqn:Z; auto.
        pose proof (stands_agree (fst r) b) as SA. unfold stands in SA. rewrite Z in SA. apply SA; auto.
        - intros u l D. destruct G as [[v G]|[G _]].
          + unfold gives in G. rewrite D in G. lia.
          + unfold is_quorum in G. rewrite D in G. discriminate.
        - intros a Pa I. apply Less; auto. destruct (rights_spec _ _ R I) as [_ [Ip Ln]].
          apply earlier_weighs_less; auto. pose proof (proper_level r P) as Lr.
          destruct Ln as [Ln|Ln]; [|unfold OWNER in *; lia].
          destruct G as [[v G]|[G E]].
          + unfold gives in G. destruct (does (fst r)) eqn:D; try lia.
            * rewrite (Fo _ eq_refl) in Z. discriminate.
            * specialize (Gr _ _ eq_refl). destruct (v =? user); lia.
            * exfalso. apply (NJ invitation); auto.
          + specialize (Qu G). lia. }
      unfold counts_by. destruct (does (fst r)) eqn:D; try (apply Plain; intros; congruence).
      destruct (invitation_of (fst r)) as [inv|] eqn:I; auto.
      destruct (invitation_spec _ _ I) as [Ip [li [ui [lt Di]]]].
      assert (reaches W inv) as Ri by (eapply its_past; eauto).
      destruct (all_sound _ Ri) as [_ [_ [_ [_ [In_ _]]]]]. specialize (In_ _ _ _ Di).
      assert (snd r <= MANAGE) as Low.
      { destruct G as [[v G]|[G _]].
        - unfold gives in G. rewrite D, I, Di in G. destruct (v =? author (fst r)); unfold MANAGE in *; lia.
        - unfold is_quorum in G. rewrite D in G. discriminate. }
      assert (forall a e, reaches W e -> ADMIN <= needs e -> In a (rights e) -> weight a < weight r) as High.
      { intros a e Re Ne Ia. destruct (rights_spec _ _ Re Ia) as [Pa [_ Ln]].
        apply higher_weighs_less; auto. unfold ADMIN, MANAGE, OWNER in *. lia. }
      rewrite (stands_agree inv b); auto.
      - destruct (stands k inv b); auto. f_equal. apply some_ext. intros v Iv.
        destruct (revokes v invitation) eqn:Rv; auto. destruct (negb (precedes v (fst r))); auto.
        destruct (negb (precedes (fst r) v)); auto.
        assert (reaches W v) as Rev by (apply itself; auto).
        destruct (all_sound _ Rev) as [_ [_ [_ [_ [_ [Re _]]]]]].
        assert (ADMIN <= needs v) as Nv.
        { unfold revokes in Rv. destruct (does v) eqn:Dv; try discriminate. eapply Re; eauto. }
        destruct b as [s|].
        + apply acts_agree with s; auto.
          * intros a Pa Ia F. apply senior_weighs_less; auto.
          * unfold measure in M. lia.
        + apply acts_agree with r; auto.
          * intros a Pa Ia _. eapply High; eauto.
          * unfold measure in M. lia.
      - intros u l. congruence.
      - intros a Pa Ia. apply Less; auto. eapply High; eauto.
    Qed.

    Lemma takes_agree : forall m x r b, In m W -> proper r -> match b with None => True | Some s => proper s end ->
      measure r b <= n -> takes h m x r b = takes k m x r b.
    Proof.
      intros m x r b I P B M. unfold takes. destruct (does m); auto.
      destruct (user =? who x); auto. destruct (level <? snd r); auto.
      destruct (negb (precedes m (fst r))); auto. destruct (negb (known x m)); auto.
      destruct (is_leave m); auto.
      assert (reaches W m) as R by (apply itself; auto).
      destruct b as [s|].
      - apply acts_agree with s; auto.
        + intros a Pa _ F. simpl in F. destruct (senior a s) eqn:E; [|discriminate]. apply senior_weighs_less; auto.
        + unfold measure in M. lia.
      - apply acts_agree with r; auto.
        + intros a Pa _ F. simpl in F. apply senior_weighs_less; auto.
        + unfold measure in M. lia.
    Qed.

    Lemma approved_agrees : forall x r, proper r -> match removal x with None => True | Some e => reaches W e end ->
      measure r None <= n -> approved W h x r = approved W k x r.
    Proof.
      intros x r P R M. unfold approved. destruct (removal x) as [e|]; auto.
      apply every_ext. intros [t l] I. f_equal. apply filter_length_ext. intros a Ia. simpl in Ia.
      destruct (all_sound _ R) as [_ [_ [_ [_ [_ [_ [_ [_ As]]]]]]]].
      destruct (As t l a I Ia) as [Ip [p D]].
      assert (reaches W a) as Ra by (eapply its_past; eauto).
      unfold counts_by. rewrite D. apply stands_agree; auto.
      - intros u v. congruence.
      - intros c Pc _. pose proof (weight_small c Pc). unfold measure in *. lia.
    Qed.

    Lemma holds_by_agrees : forall x r b, question x r b -> measure r b <= n ->
      holds_by W h x r b = holds_by W k x r b.
    Proof.
      intros x r b [P [B Q]] M. unfold holds_by. rewrite (credential_agrees r b P B M).
      destruct (counts_by W k (fst r) b); auto.
      assert (some (fun m => takes h m x r b) W = some (fun m => takes k m x r b) W) as ->.
      { apply some_ext. intros m I. apply takes_agree; auto. }
      destruct (is_quorum (fst r) ||| negb (some (fun m => takes k m x r b) W)); auto.
      destruct (removal x) as [e|] eqn:E.
      - destruct Q as [Re ->]. apply approved_agrees; auto. rewrite E; auto.
      - unfold approved. rewrite E. auto.
    Qed.
  End Agree.

  (** The rules' equations. *)
  Definition solves (f : act -> right -> option right -> bool) : Prop :=
    forall x r b, question x r b -> f x r b = holds_by W f x r b.

  Theorem one_solution : forall f g, solves f -> solves g -> forall x r b, question x r b -> f x r b = g x r b.
  Proof.
    intros f g F G. assert (forall n, agree_below n f g) as A.
    { induction n as [|n IH]; intros x r b Q M; [lia|].
      rewrite (F x r b Q), (G x r b Q). apply holds_by_agrees with n; auto. lia. }
    intros x r b Q. apply (A (S (measure r b))); auto.
  Qed.

  Theorem more_fuel_is_the_same : forall n m, n <= m -> agree_below n (holds n W) (holds m W).
  Proof.
    induction n as [|n IH]; intros m L x r b Q M; [lia|].
    destruct m as [|m]; [lia|]. simpl. apply holds_by_agrees with n; auto; [|lia]. apply IH. lia.
  Qed.

  Lemma enough_fuel : forall r b, proper r -> match b with None => True | Some s => proper s end ->
    S (measure r b) < fuel W.
  Proof.
    intros r b P B. pose proof (weight_small r P) as Wr. unfold fuel. fold N.
    assert (S (6 * N + 1) = S K) as -> by reflexivity.
    assert (measure r b < K * K) as H.
    { unfold measure. destruct b as [s|].
      - pose proof (weight_small s B). assert (S (weight s) * K <= K * K) by (apply Nat.mul_le_mono_r; lia).
        rewrite Nat.mul_succ_l in *. lia.
      - assert (S (weight r) * K <= K * K) by (apply Nat.mul_le_mono_r; lia). rewrite Nat.mul_succ_l in *. lia. }
    rewrite Nat.mul_succ_l, Nat.mul_succ_r. assert (0 < K) by (unfold K; lia). lia.
  Qed.

  (** The answers of Rules.v are that solution. *)
  Theorem holds_solves : solves (holds (fuel W) W).
  Proof.
    intros x r b Q. pose proof Q as [P [B _]]. pose proof (enough_fuel r b P B) as F.
    destruct (fuel W) as [|n] eqn:E; [lia|]. simpl. apply holds_by_agrees with n; auto; [|lia].
    change (agree_below n (holds n W) (holds (S n) W)). apply more_fuel_is_the_same. lia.
  Qed.
End OneAnswer.

(** * All that M admits is sound *)

Lemma level_small : forall W u, level W u <= OWNER.
Proof.
  intros. unfold level. destruct (find _ _) as [l|] eqn:F; [|unfold OWNER; lia].
  apply find_some in F. destruct F as [I _]. simpl in I. unfold OWNER, ADMIN, MANAGE, WRITE, READ in *. lia.
Qed.

Lemma covering_spec : forall P q, In q (covering P) -> In q P /\ is_quorum q = true.
Proof.
  intros P q I. unfold covering, in_force in I. apply filter_In in I. destruct I as [I _].
  apply filter_In in I. destruct I as [I _]. apply filter_In in I. destruct I as [I Q]. split; auto.
  destruct (is_quorum q); auto.
Qed.

Lemma first_approvals_spec : forall P p a, In a (first_approvals P p) -> In a P /\ exists n, does a = Approve n.
Proof.
  intros P p a I. unfold first_approvals in I. apply filter_In in I. destruct I as [I _].
  apply filter_In in I. destruct I as [I Q]. split; auto.
  unfold approves in Q. destruct (does a); try discriminate. eauto.
Qed.

Lemma demands_spec : forall P u l t given a, In (t, given) (demands P u l) -> In a given ->
  In a P /\ exists n, does a = Approve n.
Proof.
  intros P u l t given a I J. unfold demands in I. destruct (covering P) as [|q qs]; [destruct I|].
  destruct (find _ _) as [p|]; apply in_map_iff in I; destruct I as [o [E _]]; inversion E; subst.
  - apply filter_In in J. destruct J as [J _]. eapply first_approvals_spec; eauto.
  - destruct J.
Qed.

Theorem admitted_is_sound : forall P n i a d e, (forall c, In c P -> num c < n) -> admit P n i a d = Some e ->
  sound e /\ past e = P /\ num e = n.
Proof.
  intros P n i a d e L A. unfold admit in A. set (m := make P n i a d 0 (needed a d)) in *.
  destruct (may P m) eqn:M; [|discriminate]. inversion A; subst e. clear A. split; [|split; reflexivity].
  unfold sound. change (past m) with P. change (num m) with n. change (does m) with d. change (needs m) with (needed a d).
  split; [exact L|]. split.
  { intros u. unfold gives. change (does m) with d. destruct d; try (unfold OWNER; lia).
    - destruct (has u founders); unfold OWNER; lia.
    - unfold may in M. change (does m) with (Grant user level) in M. change (needs m) with (Nat.max ADMIN level) in M.
      destruct (Nat.max ADMIN level <=? Rules.level P (author m)) eqn:G; [|discriminate].
      apply Nat.leb_le in G. pose proof (level_small P (author m)). destruct (u =? user); lia.
    - destruct (invitation_of m) as [inv|]; [|unfold OWNER; lia]. destruct (does inv); try (unfold OWNER; lia).
      destruct (u =? author m); unfold MANAGE, OWNER; lia. }
  split. { intros u l E. subst d. apply Nat.le_max_r. }
  split. { intros Q. unfold is_quorum in Q. change (does m) with d in Q. destruct d; try discriminate. apply Nat.le_refl. }
  split. { intros l u lt E. subst d. apply Nat.le_refl. }
  split. { intros j E. subst d. apply Nat.le_refl. }
  split. { intros f E. subst d. reflexivity. }
  split.
  { intros q I. unfold m, make in I. cbn in I. destruct d; try destruct I.
    destruct (negb (user =? a)); [|destruct I]. apply covering_spec; auto. }
  intros t l b I J. unfold m, make in I. cbn in I. destruct d; try destruct I.
  destruct (negb (user =? a)); [|destruct I]. eapply demands_spec; eauto.
Qed.

(** A set that grew by what M admits, each with a past of what was there. *)
Inductive grown : list entry -> Prop :=
| nothing : grown []
| one_more : forall W P n i a d e, grown W -> incl P W -> (forall c, In c W -> num c < n) ->
    admit P n i a d = Some e -> grown (e :: W).

Lemma grown_sound : forall W, grown W -> forall e, In e W -> sound e /\ incl (past e) W.
Proof.
  induction 1 as [|W P n i a d e G IH I L A]; intros x Hx; [destruct Hx|].
  destruct (admitted_is_sound P n i a d e) as [S [E _]]; auto.
  destruct Hx as [->|Hx].
  - split; auto. rewrite E. intros c Hc. right. auto.
  - destruct (IH x Hx) as [S' I']. split; auto. intros c Hc. right. auto.
Qed.

Theorem admitted_sets_have_one_answer : forall W, grown W ->
  solves W (holds (fuel W) W) /\
  forall f g, solves W f -> solves W g -> forall x r b, question W x r b -> f x r b = g x r b.
Proof.
  intros W G. assert (forall e, reaches W e -> sound e) as S.
  { intros e R. assert (In e W) as I.
    { induction R as [e I|e c R IH I]; auto. apply (grown_sound W G e IH); auto. }
    apply (grown_sound W G e I). }
  split. { apply holds_solves; auto. } intros f g F H. apply one_solution; auto.
Qed.
