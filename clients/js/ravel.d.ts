// Made from the code by `make reference`: change it there.

/** Options of a request. */
export interface RequestOptions {
  signal?: AbortSignal;
  /** How long to wait for the answer; each endpoint has a default. */
  timeoutMs?: number;
  /** The id of a repo whose branches are meant first where a branch is given by its name. */
  repo?: string;
  /** Do not try again where no answer came. */
  once?: boolean;
}

/** Options of a stream of events. */
export interface StreamOptions {
  signal?: AbortSignal;
  onState?: (isLive: boolean) => void;
}

/** What went wrong, by the codes of docs/reference/exit-codes.md. */
export class RavelError extends Error {
  code: string;
  advice: string;
  status: number;
  retryAfterMs: number;
  constructor(
    code: string,
    message: string,
    more?: { advice?: string; status?: number; cause?: unknown; retryAfterMs?: number },
  );
}

/** The content of a file; goes on where it was cut. */
export class Download implements AsyncIterable<Uint8Array> {
  readonly size: number;
  readonly name: string;
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array>;
  blob(type?: string): Promise<Blob>;
  cancel(): Promise<void>;
}

/** A map key, or map keys and places in lists from the outside in. */
export type JsonPath = string | readonly (string | number)[];

/** Where an item goes in a list; at its end without any. `item`: the item in which the path begins. */
export interface JsonPlace {
  item?: string;
  before?: string;
  after?: string;
  index?: number;
}

/** A JSON document of a branch. Each method but `read` and `live` writes a commit. */
export class JsonDocument {
  read(options?: RequestOptions): Promise<JsonDocumentView>;
  write(edits: JsonChange[], options?: RequestOptions): Promise<JsonEditResult>;
  put(path: JsonPath, value: unknown, at?: { item?: string }): Promise<JsonEditResult>;
  add(path: JsonPath, by?: number, at?: { item?: string }): Promise<JsonEditResult>;
  insert(path: JsonPath, value: unknown, place?: JsonPlace): Promise<string>;
  move(moved: string, path: JsonPath, place?: JsonPlace): Promise<JsonEditResult>;
  remove(path: JsonPath, at?: { item?: string }): Promise<JsonEditResult>;
  live(options?: StreamOptions): AsyncGenerator<JsonDocumentView>;
  /** Faults of a value that was read. */
  faults(value: unknown): string[];
  stateSchema(): Promise<JsonEditResult>;
  statedSchemas(): Promise<object[]>;
}

/** A JSON Schema, and what finds where a value does not keep to it: a validator that the app brings. Writes need both. */
export interface JsonChecks {
  schema?: object;
  findFaults?: (value: unknown, schema: object) => string[];
}

/** Writes posts into a branch. */
export class PostWriter {
  /** Settles when fewer than 256 posts are not answered. */
  readonly ready: Promise<void>;
  /** Gives the commit once it is durable. */
  post(text: string): Promise<WrittenCommitView>;
  /** Waits until all are answered, and throws the first failure. */
  close(): Promise<void>;
}

/** What a query finds now, and names (of several branches, keys) of what has changed since the result before. */
export interface LiveResult {
  documents: FoundDocument[];
  added: string[];
  changed: string[];
  moved: string[];
  removed: string[];
}

/** JSON documents that a query finds. */
export interface JsonDocuments {
  read(options?: RequestOptions): Promise<FoundDocument[]>;
  live(options?: StreamOptions): AsyncGenerator<LiveResult>;
}

export function connect(options: {
  url?: string;
  token: string;
  fetch?: typeof globalThis.fetch;
  retryMs?: number;
}): Ravel;

/** The one form of all errors: a stable code, a sentence, and what to do next (may be empty). */
export interface ErrorAnswer {
  error: ErrorDetail;
}

/** Code, message and advice of an error. */
export interface ErrorDetail {
  code: string;
  message: string;
  next: string;
}

/** The node at a glance. */
export interface NodeStatus {
  addresses: OwnAddressView[];
  clock: ClockComparison;
  commits: number;
  damaged: DamagedCounts;
  dropped: number;
  export: ExportStatus;
  faults: string[];
  home: string;
  key_use: KeyUse;
  listen: string;
  lost_writes: LostWrites;
  node: string;
  peers: PeerView[];
  pending: number;
  rejected: number;
  relay: boolean;
  repos: number;
  router: RouterView;
  search: SearchIndexView;
  storage_bound: StoreBound | null;
  uptime_seconds: number;
  user: string;
  version: string;
  websocket_listen: string;
}

/** Address at which this node can be dialed. */
export interface OwnAddressView {
  address: string;
  found_by: "configured" | "listen" | "router" | "interface" | "peers";
  reach: "machine" | "network" | "anywhere" | "unknown";
}

/** Clock of this node beside those of members who write now. */
export interface ClockComparison {
  ahead_seconds: number | null;
  authors: number;
}

/** Damaged content of this node, which is asked of peers. */
export interface DamagedCounts {
  blocks: number;
  commits: number;
}

/** Exports since the daemon's start. */
export interface ExportStatus {
  commits: number;
  destination: string;
  failures: number;
  finished_at: number | null;
  interval: number;
  last_error: string;
  next_at: number | null;
}

/** Signs that the keys of this node are used elsewhere. */
export interface KeyUse {
  displaced_at: number | null;
  own_commits_came_at: number | null;
}

/** Repos in which own commits may have been lost. */
export interface LostWrites {
  detail: string;
  repos: string[];
}

/** A peer that this node keeps a connection to, or that is connected. */
export interface PeerView {
  address: string;
  direction: "in" | "out";
  last_error: string | null;
  name: string;
  newer_features: string[];
  older_features: string[];
  owner: PeerOwner | null;
  path: "direct" | "punched" | "relayed";
  peer: string;
  reached_at: number | null;
  relay: boolean;
  since: number;
  source: "configured" | "link" | "introduction" | "lan" | "incoming";
  state: "connected" | "dialing" | "waiting";
  through: string | null;
  through_name: string;
  topics: TopicView[];
  unknown_messages: number;
  waiting_topics: number;
  websocket: boolean;
}

/** The user whose node a peer is, as that user signed on a connection: a member of a repo that both follow. */
export interface PeerOwner {
  device: string;
  earlier: boolean;
  mine: boolean;
  name: string;
  user: string;
}

/** State of a topic with a peer. */
export interface TopicView {
  behind: number;
  bodiless: boolean;
  confirmed: number;
  epoch: string;
  kind: "epoch" | "writers" | "branch";
  name: string;
  progress: SyncProgress | null;
  received: number;
  repo: string;
  sent: number;
  stalled_because: string | null;
  stalled_since: number | null;
  state: string;
  to_send: number;
}

/** Progress of a transfer of commits, as far as this node knows. */
export interface SyncProgress {
  direction: "receiving" | "sending";
  done: number;
  rate: number | null;
  seconds_left: number | null;
  total: number | null;
}

/** Result of asking the router for a port. */
export interface RouterView {
  detail: string;
  state: "off" | "not needed" | "asking" | "mapped" | "none";
}

/** Progress of the index; in a search, for the searched branches. Posts that are not indexed yet are not found. */
export interface SearchIndexView {
  percent: number;
  state: "off" | "building" | "ready";
  texts_due: number;
}

/** The bound on the store's size (`storage.size_max`), and what came of it. */
export interface StoreBound {
  days: number | null;
  size: number;
  size_max: number;
  state: "under" | "giving_up" | "alone" | "stuck";
}

/** Use of the disk by the store. */
export interface StorageUse {
  causes: CauseGrowth[];
  database: number;
  days: DayGrowth[];
  free: number;
  log: number;
  older: number;
  packs: number;
  relay: RelayRoom | null;
}

/** Data received for one cause. */
export interface CauseGrowth {
  cause: "posts" | "files" | "members" | "epochs";
  commits: number;
  size: number;
}

/** Data received on one day, by this node's clock. */
export interface DayGrowth {
  commits: number;
  day: string;
  size: number;
}

/** The room that relayed topics take. */
export interface RelayRoom {
  size: number;
  size_max: number;
  topics: number;
}

/** The latest lines of the daemon's log. */
export interface LogLines {
  lines: string[];
}

/** Peers and repos. */
export interface NodeLists {
  banned: string[];
  complete: boolean;
  cursor: string;
  gone: string[];
  known: LearnedAddress[];
  peers: PeerView[];
  repos: RepoView[];
}

/** An address that was learned of a peer that is not connected. */
export interface LearnedAddress {
  address: string;
  failures: number;
  peer: string;
  reached_at: number | null;
  source: "configured" | "link" | "introduction" | "lan" | "incoming";
}

/** A repo. */
export interface RepoView {
  branches: number;
  commits: number;
  name: string;
  of_devices: boolean;
  offers: number;
  permission: "owner" | "admin" | "manage" | "write" | "read" | "former" | "joining" | "damaged";
  repo: string;
  requests: number;
  revision: number;
  standing: RepoStanding;
  whole: boolean;
}

/** State of a repo beside other nodes and members, as far as this node knows. */
export interface RepoStanding {
  behind: number;
  behind_since: number | null;
  damaged: number;
  epoch_due: boolean;
  guests: number;
  held_at: number | null;
  helpers: string[];
  in_sync_with: string[];
  own_forks: number;
  parts: StandingPart[];
  progress: SyncProgress | null;
  since: number | null;
  state: "in_sync" | "syncing" | "alone" | "not_shared" | "cut_off" | "former" | "waiting" | "joining" | "damaged";
  uncertain: string;
  unfetched_files: number;
  unheld: number | null;
  unread: number;
  waiting: number;
}

/** One thing that people are told of a repo: a code, with the values that belong to it. */
export interface StandingPart {
  at?: number | null;
  code: "alone" | "ask_accepted" | "ask_closed" | "ask_expired" | "ask_failed" | "ask_refused" | "ask_sending" | "ask_waiting" | "behind" | "behind_quiet" | "causes_missing" | "comparing" | "damaged" | "epoch_due" | "excluded" | "false_checkpoint" | "false_voucher" | "follows_parts" | "former" | "guests" | "held" | "in_sync" | "join_refused" | "joining" | "keeps_parts" | "keeps_recent" | "let_in" | "link_ended" | "membership_damaged" | "not_kept" | "not_shared" | "older_not_kept" | "own_comments" | "own_forks" | "place_claimed" | "reading" | "reading_branches" | "refused" | "requests" | "secrets_missing" | "sending" | "signers_gone" | "stalled" | "syncing" | "topics_waiting" | "uncertain" | "unfetched_files" | "unheld" | "unheld_unknown" | "unread" | "vouched" | "waiting";
  count?: number;
  foreign?: number;
  least?: boolean;
  peers?: NamedPeer[];
  people?: string[];
  rate?: number;
  reason?: string;
  seconds?: number;
}

/** A peer as people are told of it. */
export interface NamedPeer {
  name: string;
  owner: PeerOwner | null;
  peer: string;
  relay: boolean;
}

/** Peers, learned addresses and banned peers. */
export interface PeerList {
  banned: string[];
  known: LearnedAddress[];
  peers: PeerView[];
}

/** The repos of this node. */
export interface RepoList {
  complete: boolean;
  cursor: string;
  gone: string[];
  repos: RepoView[];
}

/** The node stops. No fields. */
export interface ClosingEvent {
}

/** Content of an export. */
export interface ExportResult {
  added: number;
  commits: number;
  parts: number;
  path: string;
  relayed: number;
  unjudged_repos: number;
  watermark: number;
}

/** The export that is there. */
export interface ExportView {
  destination: string;
  made_at: number | null;
  size: number | null;
}

/** A code for the web page. */
export interface PageCode {
  code: string;
  expires_seconds: number;
  path: string;
}

/** A QR code as an SVG path. */
export interface QrCode {
  path: string;
  size: number;
}

/** Draws a QR code. */
export interface QrRequest {
  text: string;
}

/** Names a new repo, its founders and their council. */
export interface RepoRequest {
  name: string;
  founders?: string[];
  council?: number | null;
}

/** Content of a link, without its secrets. Names are as its maker wrote them. */
export interface LinkView {
  by: string | null;
  expired: boolean;
  expires_at: number | null;
  here: string | null;
  kind: "invite" | "ask" | "read" | "branch";
  name: string;
  peers: LinkPeer[];
  permission: "read" | "write";
  repo: string;
}

/** A peer that a link names. */
export interface LinkPeer {
  address: string;
  name: string;
  owner: PeerOwner | null;
  peer: string;
}

/** Names a link. */
export interface LookRequest {
  link: string;
}

/** Joins by an invitation. */
export interface JoinRequest {
  invitation: string;
  follow?: boolean;
}

/** Follows by a read capability. */
export interface FollowRequest {
  capability: string;
}

/** A repo that continues another. */
export interface RepoFork {
  branches: ForkedBranch[];
  files_left: string[];
  name: string;
  repo: string;
}

/** A branch of a fork. */
export interface ForkedBranch {
  branch: string;
  carried: number;
}

/** Names what is created. */
export interface NameRequest {
  name: string;
}

/** Peers of a repo, and what each has of it. */
export interface HolderList {
  holders: RepoHolder[];
}

/** A peer that follows a repo, or was seen to hold all of it. */
export interface RepoHolder {
  connected: boolean;
  has_all: boolean;
  held_at: number | null;
  keeps: number | null;
  keeps_days: number | null;
  lacks: number | null;
  member: boolean | null;
  name: string;
  owner: PeerOwner | null;
  peer: string;
  relay: boolean;
}

/** Contents of a repo that this node keeps. Headers of all commits are always kept. */
export interface RepoKeeping {
  absent: number;
  bound_days: number | null;
  branches: string[] | null;
  files: "all" | "on_demand";
  keepers: number;
  last_days: number | null;
  not_kept: number;
  older_absent: number;
  older_here: number;
  repo: string;
}

/** Says whose contents to keep. */
export interface KeepingRequest {
  branches: string[] | null;
  last_days?: number | null;
  files?: "all" | "on_demand";
}

/** No fields: the action is done. */
export interface Empty {
}

/** A read capability: a secret that does not expire. */
export interface Capability {
  addresses: string[];
  capability: string;
  reach: "machine" | "network" | "anywhere";
}

/** The epochs of a repo. */
export interface EpochList {
  epochs: EpochView[];
}

/** An epoch of a repo. */
export interface EpochView {
  author: string;
  author_name: string;
  clean: boolean;
  counts: boolean;
  current: boolean;
  epoch: string;
  follows: string[];
  open: boolean;
  readers: number;
  tip: boolean;
}

/** An epoch that was started. */
export interface NewEpoch {
  epoch: string;
  repo: string;
}

/** A fresh key of this user that was stated in a repo. */
export interface FreshKey {
  commit: string;
  epoch: string | null;
  repo: string;
}

/** The named commits of a repo. */
export interface TagList {
  tags: TagView[];
}

/** A named commit. */
export interface TagView {
  branch: string;
  commit: string;
  name: string;
}

/** A commit that was written to a repo's root branch. */
export interface RootCommit {
  commit: string;
  repo: string;
}

/** Names a commit. */
export interface TagRequest {
  commit: string;
}

/** The members of a repo. */
export interface MemberList {
  claims: ClaimedPlace[];
  members: MemberView[];
}

/** A place in a repo that several users claim: the key that had it was copied. */
export interface ClaimedPlace {
  claimant_names: string[];
  claimants: string[];
  name: string;
  user: string;
}

/** A member of a repo. */
export interface MemberView {
  came: MemberArrival | null;
  color: number | null;
  looks_alike: boolean;
  name: string;
  permission: "read" | "write" | "manage" | "admin" | "owner";
  person: string;
  petname: string | null;
  stated_name: string | null;
  user: string;
}

/** Way by which a member came to a repo: by the oldest right that it holds now. */
export interface MemberArrival {
  author: string;
  author_name: string;
  friend_names: string[];
  friends: string[];
  kind: "founded" | "invited" | "granted" | "device_added" | "recovered";
  place_of: string | null;
  place_since: number | null;
  time: number | null;
}

/** The latest changes of who is in a repo. */
export interface MemberChangeList {
  changes: MemberChangeView[];
}

/** A change of who is in a repo, that counts now. */
export interface MemberChangeView {
  author: string;
  author_name: string;
  commit: string;
  device_name: string | null;
  earlier_name: string | null;
  friend_names: string[];
  friends: string[];
  kind: "joined" | "granted" | "lowered" | "excluded" | "left" | "renamed" | "device_added" | "device_removed" | "moved" | "recovered" | "friends_named";
  permission: "read" | "write" | "manage" | "admin" | "owner" | null;
  time: number;
  user: string;
  user_name: string;
}

/** A change of who is in a repo, or of what counts there. */
export interface MembershipChange {
  commit: string;
  repo: string;
  user?: string;
  voided: number;
}

/** Grants a permission. */
export interface GrantRequest {
  user: string;
  permission: string;
}

/** A removal of a member. */
export interface RemovalResult {
  commit: string;
  devices: string[];
  epoch: string;
  other_devices: string[];
  repo: string;
  user?: string;
  voided: number;
}

/** Takes rights away. */
export interface RemovalRequest {
  user: string;
  keeps?: string;
  person?: boolean;
}

/** A removal, with the epoch that this node writes in now. */
export interface LeaveResult {
  commit: string;
  devices: string[];
  epoch: string;
  other_devices: string[];
  repo: string;
  user?: string;
  voided: number;
}

/** Leaves a repo. */
export interface LeaveRequest {
  force?: boolean;
}

/** The invitations of a repo. */
export interface InvitationList {
  invitations: InvitationView[];
}

/** An invitation that was made. */
export interface InvitationView {
  author: string;
  author_name: string;
  expires_at: number;
  invitation: string;
  joined: string[];
  joined_names: string[];
  permission: "read" | "write" | "manage" | "admin" | "owner";
  renews: boolean;
  revoked: boolean;
  uses: number;
}

/** A new invitation. */
export interface InvitationLinkView {
  addresses: string[];
  expires_at: number;
  id: string;
  invitation: string;
  reach: "machine" | "network" | "anywhere";
}

/** Makes an invitation. */
export interface InvitationRequest {
  permission?: string;
  expires_seconds?: number;
  uses?: number;
  reach?: "machine" | "network" | "anywhere";
  renews?: boolean;
}

/** Adopts void commits. */
export interface AdoptionRequest {
  commits: string[];
}

/** The membership checkpoints of a repo. */
export interface CheckpointList {
  checkpoints: CheckpointView[];
}

/** A membership checkpoint: an admin's signature under what follows from the root branch. */
export interface CheckpointView {
  admin: boolean;
  author: string;
  author_name: string;
  checkpoint: string;
  state: "true" | "false" | "unchecked";
  time: number;
}

/** A new link that asks. */
export interface AskLinkMade {
  addresses: string[];
  expires_at: number;
  link: string;
  lobby: string;
  reach: "machine" | "network" | "anywhere";
}

/** Makes a link that asks. */
export interface AskLinkRequest {
  permission?: string;
  expires_seconds?: number;
  uses?: number;
  reach?: "machine" | "network" | "anywhere";
}

/** The links that ask of a repo. */
export interface AskLinkList {
  links: AskLinkView[];
}

/** A link that asks. */
export interface AskLinkView {
  author: string;
  author_name: string;
  closed: boolean;
  expires_at: number;
  full: boolean;
  here: boolean;
  lobby: string;
  permission: "read" | "write" | "manage" | "admin" | "owner";
  requests: number;
}

/** Requests to be let into repos. */
export interface RequestList {
  made: AskView[];
  requests: RequestView[];
}

/** A request that this user made. */
export interface AskView {
  admin: string;
  admin_name: string;
  code: string;
  expires_at: number;
  lobby: string;
  permission: "read" | "write" | "manage" | "admin" | "owner";
  reason: string;
  repo: string;
  repo_name: string;
  status: "sending" | "waiting" | "accepted" | "refused" | "withdrawn" | "closed" | "expired" | "failed";
}

/** A request to be let into a repo. */
export interface RequestView {
  asked_at: number;
  code: string;
  expires_at: number;
  lobby: string;
  looks_alike: boolean;
  name: string;
  permission: "read" | "write" | "manage" | "admin" | "owner";
  repo: string;
  repo_name: string;
  request: string;
  status: "waiting" | "accepted" | "refused" | "withdrawn" | "closed" | "expired";
  user: string;
}

/** Answers a request. */
export interface RequestAnswerRequest {
  accepts: boolean;
  permission?: string;
}

/** Name that this user states. */
export interface OwnName {
  color: number | null;
  name: string | null;
  repos: OwnRepo[];
  shown: string;
  user: string;
}

/** State of a repo. */
export interface OwnRepo {
  name: string;
  repo: string;
  state: "stated" | "due" | "not_permitted";
}

/** States a name. */
export interface OwnNameRequest {
  name: string | null;
  color?: number | null;
}

/** All petnames. */
export interface PetnameList {
  peers: Petname[];
  petnames: Petname[];
}

/** A petname: the name that this user gives to another user or a node. */
export interface Petname {
  name: string;
  user: string;
}

/** Names a user or a node for this user alone. */
export interface PetnameRequest {
  user: string;
  name: string | null;
  peer?: boolean;
}

/** The devices of this user's person. */
export interface DeviceList {
  devices: DeviceView[];
  joining: boolean;
  let_in: LetInDevice[];
  moved_to: string | null;
  moved_to_name: string;
  person: string;
  removed_by: string | null;
  removed_by_name: string;
  repo: string | null;
  stayed: StayedDevice[];
}

/** A device of a person. */
export interface DeviceView {
  first: boolean;
  name: string;
  repos: DeviceRepo[];
  this: boolean;
  user: string;
}

/** State of a device in a repo of the first device. */
export interface DeviceRepo {
  lacking: boolean;
  name: string;
  permission: "read" | "write" | "manage" | "admin" | "owner" | null;
  repo: string;
  shown: boolean;
}

/** A key that friends let in, in one repo, as a device of this person. */
export interface LetInDevice {
  device: string;
  friend_names: string[];
  friends: string[];
  grant: string;
  grantors: string[];
  name: string;
  repo: string;
  this: boolean;
  time: number;
}

/** A removed device that is still a member of a repo. */
export interface StayedDevice {
  advice: string;
  called: string;
  device: string;
  name: string;
  permission: "read" | "write" | "manage" | "admin" | "owner";
  repo: string;
}

/** A link for a new device. */
export interface DeviceLinkView {
  addresses: string[];
  expires_at: number;
  id: string;
  link: string;
  person: string;
  reach: "machine" | "network" | "anywhere";
  repo: string;
}

/** Makes a link for a device. */
export interface DeviceInvitationRequest {
  expires_seconds?: number;
  reach?: "machine" | "network" | "anywhere";
}

/** Makes this node a device of another user. */
export interface DeviceJoinRequest {
  link: string;
}

/** Repos that were handed on to other devices. */
export interface DeviceSync {
  given: GivenRepo[];
}

/** A repo that was handed on, or could not be. */
export interface GivenRepo {
  advice: string;
  device: string;
  name: string;
  repo: string;
}

/** A device that was removed. */
export interface RemovedDevice {
  device: string;
  repos: LeftRepo[];
}

/** Steps that were done in one repo to remove a device. */
export interface LeftRepo {
  advice: string;
  excluded: boolean;
  left: boolean;
  name: string;
  renewed: boolean;
  repo: string;
  taken_back: boolean;
}

/** The device that is the first one now. */
export interface PromotedDevice {
  device: string;
  repos: MovedRepo[];
}

/** State of a repo when the place of this user passes to a device. */
export interface MovedRepo {
  advice: string;
  already: boolean;
  moved: boolean;
  name: string;
  repo: string;
  signs: boolean;
}

/** Recovery friends of this user, and members who named it as one. */
export interface RecoveryList {
  let_in: boolean;
  persons: RecoveryPerson[];
  repos: RepoFriends[];
}

/** A member who named this user as a recovery friend. */
export interface RecoveryPerson {
  friends: number;
  name: string;
  need: number;
  repo: string;
  user: string;
  user_name: string;
}

/** Friends of this user in one repo. */
export interface RepoFriends {
  advice: string;
  changed: boolean;
  friend_names: string[];
  friends: string[];
  name: string;
  need: number;
  repo: string;
}

/** Statements about this user's friends, one for each repo. */
export interface NamedFriends {
  repos: RepoFriends[];
}

/** Names friends. */
export interface FriendsRequest {
  friends: string[];
  need?: number | null;
  only?: string;
}

/** A friend's signatures, for the person who publishes them. */
export interface RecoverySignatures {
  member: string;
  repos: SignedRepo[];
  texts: string[];
  user: string;
}

/** A repo in which this user has signed, and what the signature gives. */
export interface SignedRepo {
  name: string;
  permission: "read" | "write" | "manage" | "admin" | "owner";
  repo: string;
}

/** Signs for a member's new key. */
export interface RecoverySignRequest {
  member: string;
  user: string;
}

/** Outcome of signatures, one for each repo. */
export interface RecoveryResult {
  repos: RecoveredRepo[];
}

/** State of a repo in which friends have signed. */
export interface RecoveredRepo {
  advice: string;
  already: boolean;
  grant: string;
  grantors: string[];
  let_in: boolean;
  member: string | null;
  member_name: string;
  name: string;
  need: number;
  permission: "read" | "write" | "manage" | "admin" | "owner";
  repo: string;
  signed: number;
  user: string;
}

/** Publishes signatures of friends. */
export interface RecoveryTextsRequest {
  texts: string[];
}

/** The quorums of a repo. */
export interface QuorumState {
  council: CouncilView | null;
  proposals: ProposalView[];
  quorums: QuorumView[];
}

/** The founders who exclude and demote any member together, founders too. */
export interface CouncilView {
  signer_names: string[];
  signers: string[];
  threshold: number;
}

/** A proposal and how far it has come. */
export interface ProposalView {
  approved_by: string[];
  approved_by_names: string[];
  author: string;
  author_name: string;
  branch?: string;
  commits?: string[];
  keeps?: "read" | "write" | "manage" | "admin" | "owner" | null;
  kind: "checkpoint" | "removal";
  missing: number;
  proposal: string;
  state: "open" | "approved" | "done" | "void";
  user?: string;
  user_name?: string;
}

/** A quorum in force. */
export interface QuorumView {
  author: string;
  author_name: string;
  quorum: string;
  removals: boolean;
  signer_names: string[];
  signers: string[];
  threshold: number;
}

/** Sets a quorum. */
export interface QuorumRequest {
  signers: string[];
  threshold: number;
  removals?: boolean;
}

/** A proposal that was made, signed or carried out. */
export interface Proposal {
  checkpoint: string | null;
  devices?: string[];
  proposal: string;
  repo: string;
}

/** Proposes a removal. */
export interface RemovalProposalRequest {
  user: string;
  keeps?: string;
  person?: boolean;
}

/** The branches of a repo, the main branch first, without its root branch. */
export interface BranchList {
  branches: BranchView[];
}

/** A branch. */
export interface BranchView {
  archived: boolean;
  branch: string;
  commits: number;
  head_count: number;
  heads: string[];
  kept: boolean;
  latest_at: number | null;
  main: boolean;
  name: string;
  pending: number;
  rejected: number;
  repo: string;
  unread: number;
  void: number;
}

/** Renames or archives a branch. At least one field is given. */
export interface BranchEditRequest {
  name?: string | null;
  archived?: boolean | null;
}

/** Forks a branch. */
export interface ForkRequest {
  name: string;
  commit?: string;
}

/** Commits that a merge of two branches wrote. */
export interface BranchMerge {
  branch: string;
  carried: number;
  commit: string | null;
  files_left: string[];
  left: number;
  merged: string;
}

/** Merges a branch. */
export interface MergeRequest {
  source: string;
}

/** Content that a compaction releases. */
export interface CompactionResult {
  bodies: number;
  branch: string;
  commits: string[];
  dry_run: boolean;
  erased: number;
  size: number;
}

/** Compacts a branch. */
export interface CompactRequest {
  dry_run?: boolean;
  without_missing?: boolean;
}

/** A commit that was written, durably. */
export interface WrittenCommitView {
  branch: string;
  commit: string;
  rank: number;
}

/** Writes a post, with files or without. */
export interface PostRequest {
  text: string;
  resolve_mentions?: boolean;
  attachments?: string[];
}

/** Posts that were written, durably. */
export interface WrittenPosts {
  branch: string;
  commits: string[];
  rank: number;
}

/** Writes posts, one after the other. */
export interface PostsRequest {
  texts: string[];
}

/** Outcome of a line: the commit, or the error. */
export interface StreamedOutcome {
  branch?: string;
  commit?: string;
  error?: ErrorDetail;
  rank?: number;
}

/** Line of a stream of posts. */
export interface StreamedPost {
  text: string;
  key?: string;
}

/** A commit with all it states. Of one that was not accepted, the verdict alone. */
export interface CommitView {
  acks?: string[];
  attachments?: Attachment[];
  author?: string;
  author_name?: string;
  branch: string;
  branch_name: string;
  by: string[];
  commit: string;
  continues?: BranchHeads;
  damaged?: boolean;
  deleted?: boolean;
  deletes?: string;
  deps?: string[];
  document?: string;
  edited_at?: number;
  edits?: string;
  epoch?: string;
  erased?: boolean;
  feed_previous?: string | null;
  feed_sequence?: number;
  files?: string[];
  files_added?: string[];
  files_removed?: string[];
  hidden_by?: string;
  hidden_by_name?: string;
  imported_author?: string;
  kind?: string;
  mentions?: Mention[];
  merged?: BranchHeads;
  negative_deps?: string[];
  not_kept?: boolean;
  origin?: Origin;
  person?: string;
  place?: string;
  position?: number | null;
  rank?: number;
  reason: string;
  reply_to?: ReplyTo;
  rule: string;
  size?: number;
  tangles?: Record<string, string[]>;
  text?: string | null;
  time?: number;
  unreadable?: boolean;
  verdict: "accepted" | "void" | "pending" | "unread" | "rejected";
}

/** A commit whose files are a post's. */
export interface Attachment {
  commit: string;
  files: AttachedFile[];
}

/** A file of a post. Name and size are as its author states them. */
export interface AttachedFile {
  file: string;
  name: string;
  size: number | null;
}

/** Commits of another branch. */
export interface BranchHeads {
  branch: string;
  commits: string[];
}

/** A user that a text names. */
export interface Mention {
  name: string;
  user: string;
}

/** Origin of a commit that a merge carried over. */
export interface Origin {
  author: string;
  author_name: string;
  branch: string;
  commit: string;
}

/** Post that a reply answers. */
export interface ReplyTo {
  author?: string;
  author_name?: string;
  commit: string;
  state: "shown" | "deleted" | "hidden" | "void" | "erased" | "not_kept" | "absent";
  text?: string;
  thread: string;
}

/** The verdict on a commit. */
export interface VerdictView {
  author?: string;
  author_name?: string;
  branch: string;
  branch_name: string;
  by: string[];
  commit: string;
  reason: string;
  rule: string;
  verdict: "accepted" | "void" | "pending" | "unread" | "rejected";
}

/** The void commits of a branch. */
export interface VoidList {
  voids: VoidView[];
}

/** A void commit, and why it is void. */
export interface VoidView {
  author: string;
  author_name: string;
  by: string[];
  commit: string;
  reason: string;
  rule: string;
  verdict: "accepted" | "void" | "pending" | "unread" | "rejected";
}

/** A commit about a post, written durably. */
export interface WrittenPost {
  branch: string;
  commit: string;
  post: string;
  rank: number;
}

/** Says what a post says. */
export interface PostTextRequest {
  text: string;
  resolve_mentions?: boolean;
}

/** A post that was hidden, or shown again. */
export interface HiddenPost {
  commit: string | null;
  hidden: boolean;
  post: string;
}

/** Hides a post, or shows it again. */
export interface HideRequest {
  hidden: boolean;
}

/** The versions of a post, in canonical order. The last edit counts; a deletion is final. */
export interface PostVersions {
  branch: string;
  deleted: boolean;
  hidden_by?: string;
  post: string;
  previous: string | null;
  versions: PostVersion[];
}

/** Text of a post in one version. */
export interface PostVersion {
  attachments?: Attachment[];
  author: string;
  author_name: string;
  commit: string;
  continues?: BranchHeads;
  damaged?: boolean;
  deleted?: boolean;
  deletes?: string;
  document?: string;
  edited_at?: number;
  edits?: string;
  erased?: boolean;
  files?: string[];
  hidden_by?: string;
  hidden_by_name?: string;
  imported_author?: string;
  mentions?: Mention[];
  merged?: BranchHeads;
  not_kept?: boolean;
  origin?: Origin;
  person: string;
  reply_to?: ReplyTo;
  text: string | null;
  time: number;
  unreadable?: boolean;
  version: "original" | "edit" | "deletion";
}

/** A post and the replies that state to be of its thread, in canonical order. */
export interface Thread {
  branch: string;
  first: string;
  items: TimelineItem[];
  next: string | null;
}

/** A commit in a timeline. */
export interface TimelineItem {
  acks: string[];
  attachments?: Attachment[];
  author: string;
  author_name: string;
  commit: string;
  continues?: BranchHeads;
  damaged?: boolean;
  deleted?: boolean;
  deletes?: string;
  document?: string;
  edited_at?: number;
  edits?: string;
  erased?: boolean;
  files?: string[];
  hidden_by?: string;
  hidden_by_name?: string;
  imported_author?: string;
  kind: string;
  mentions?: Mention[];
  merged?: BranchHeads;
  not_kept?: boolean;
  origin?: Origin;
  person: string;
  place: string;
  position?: number;
  rank: number;
  reply_to?: ReplyTo;
  text: string | null;
  time: number;
  unreadable?: boolean;
}

/** A window of a timeline. */
export interface TimelineWindow {
  arriving?: ArrivingCommits;
  cursor?: string;
  items: TimelineItem[];
  next: number | string | null;
  previous: number | string | null;
  total: number;
}

/** The newest commits of a branch whose past is on its way. They have no positions, and settle in the timeline. */
export interface ArrivingCommits {
  earlier: number;
  items: CommitItem[];
  vouched?: VouchedBy;
  waiting: number;
}

/** A commit in a list. */
export interface CommitItem {
  acks: string[];
  attachments?: Attachment[];
  author: string;
  author_name: string;
  commit: string;
  continues?: BranchHeads;
  damaged?: boolean;
  deleted?: boolean;
  deletes?: string;
  document?: string;
  edited_at?: number;
  edits?: string;
  erased?: boolean;
  files?: string[];
  hidden_by?: string;
  hidden_by_name?: string;
  imported_author?: string;
  kind: string;
  mentions?: Mention[];
  merged?: BranchHeads;
  not_kept?: boolean;
  origin?: Origin;
  person: string;
  rank: number;
  reply_to?: ReplyTo;
  text: string | null;
  time: number;
  unreadable?: boolean;
}

/** Maker of the link by which this node joined, on whose word some of these commits rest until the past is here. */
export interface VouchedBy {
  at: number;
  name: string;
  user: string;
}

/** A window of a timeline's edits. */
export interface EditWindow {
  branch: string;
  cursor: string;
  edits: EditView[];
  last: string;
  more: boolean;
  reset: boolean;
}

/** An edit of a timeline. */
export interface EditView {
  commit: string;
  cursor: string;
  edit: "insert" | "move" | "remove";
  item?: EditItem;
  place: string;
  position?: number | null;
  position_before?: number | null;
}

/** The commit that an edit inserts. */
export interface EditItem {
  acks: string[];
  attachments?: Attachment[];
  author: string;
  author_name: string;
  commit: string;
  continues?: BranchHeads;
  damaged?: boolean;
  deleted?: boolean;
  deletes?: string;
  document?: string;
  edited_at?: number;
  edits?: string;
  erased?: boolean;
  files?: string[];
  hidden_by?: string;
  hidden_by_name?: string;
  imported_author?: string;
  kind: string;
  mentions?: Mention[];
  merged?: BranchHeads;
  not_kept?: boolean;
  origin?: Origin;
  person: string;
  rank: number;
  reply_to?: ReplyTo;
  text: string | null;
  time: number;
  unreadable?: boolean;
}

/** Notice that a client's knowledge of a timeline no longer holds. */
export interface ResetEvent {
  cursor: string;
}

/** The digest of a timeline. */
export interface TimelineDigest {
  commits: number;
  digest: string;
  head_count: number;
  heads: string[];
}

/** The end of a branch's state: what it continues, then its own commits. */
export interface BranchState {
  branch: string;
  items: StateItem[];
  total: number;
}

/** A commit of a branch's state. */
export interface StateItem {
  acks: string[];
  attachments?: Attachment[];
  author: string;
  author_name: string;
  branch: string;
  commit: string;
  continues?: BranchHeads;
  damaged?: boolean;
  deleted?: boolean;
  deletes?: string;
  document?: string;
  edited_at?: number;
  edits?: string;
  erased?: boolean;
  files?: string[];
  hidden_by?: string;
  hidden_by_name?: string;
  imported_author?: string;
  kind: string;
  mentions?: Mention[];
  merged?: BranchHeads;
  not_kept?: boolean;
  origin?: Origin;
  person: string;
  rank: number;
  reply_to?: ReplyTo;
  text: string | null;
  time: number;
  unreadable?: boolean;
}

/** The end of a branch as it was at a commit. */
export interface PastCommits {
  at: string;
  items: CommitItem[];
}

/** The feeds of a branch. */
export interface FeedCheck {
  branch: string;
  feeds: FeedView[];
  fork_count: number;
  forks: FeedForkView[];
}

/** An author's feed in a branch. */
export interface FeedView {
  author: string;
  author_name: string;
  commits: number;
  forks: number;
  last: number;
}

/** A place of a feed that was used for several commits. */
export interface FeedForkView {
  author: string;
  author_name: string;
  commit_count: number;
  commits: string[];
  sequence: number;
}

/** The end of a tangle. */
export interface TangleView {
  commits: TangleCommit[];
  count: number;
  kind: string;
  root: string;
  tips: string[];
}

/** A commit in a tangle. */
export interface TangleCommit {
  author: string;
  author_name: string;
  body: string;
  branch: boolean;
  commit: string;
  imported_author?: string;
  merge: boolean;
  previous: string[];
  rank: number;
  source?: string;
  time: number;
  tip: boolean;
  void: boolean;
}

/** Result of a search. */
export interface SearchResult {
  hits: SearchHit[];
  index: SearchIndexView;
  names: NameHit[];
  next: string | null;
}

/** A commit that fits. Of a text it is the last commit that the text is made of, with its time and its author. */
export interface SearchHit {
  author: string;
  author_name: string;
  branch: string;
  branch_name: string;
  commit: string;
  edited_at?: number;
  files: string[];
  imported_author?: string;
  kind: string;
  mentions?: Mention[];
  origin?: Origin;
  person: string;
  repo: string;
  repo_name: string;
  text: string | null;
  texts?: TextRoot[];
  time: number;
}

/** One of the texts that a branch has. */
export interface TextRoot {
  root: string;
  title: string;
}

/** A branch or a tag whose name fits. */
export interface NameHit {
  branch: string;
  commit?: string;
  kind: "branch" | "tag";
  name: string;
  repo: string;
  repo_name: string;
}

/** Branches with something new. */
export interface UnseenList {
  branches: UnseenBranch[];
}

/** Counts of new commits in a branch. */
export interface UnseenBranch {
  branch: string;
  latest_mention: MentioningCommit | null;
  mentions: number;
  more: boolean;
  repo: string;
  unseen: number;
}

/** A commit that mentions the user of this node. */
export interface MentioningCommit {
  author: string;
  author_name: string;
  commit: string;
}

/** New commits of one branch. */
export interface UnseenCommitList {
  branch: string;
  commits: string[];
  mentions: number;
  more: boolean;
  unseen: number;
  up_to: number;
  visited: boolean;
}

/** Has a branch seen. */
export interface SeenRequest {
  up_to: number;
}

/** The offers to a repo. */
export interface OfferList {
  offers: OfferView[];
}

/** An offer. */
export interface OfferView {
  answers: string;
  author: string;
  author_name: string;
  branch: string;
  commits: number;
  kind: "comment" | "trust" | "pull";
  merged: boolean;
  note: string;
  offer: string;
  readable: boolean;
  status: "open" | "accepted" | "refused";
}

/** An offer that was made. */
export interface OfferMade {
  offer: string;
  status: "open" | "accepted" | "refused";
}

/** Offers a branch to a document's inbox. */
export interface OfferRequest {
  source: string;
  note?: string;
  pulls?: boolean;
}

/** An offer that was answered, or a comment that was written. */
export interface OfferAnswer {
  commit: string;
  offer: string;
  status: "open" | "accepted" | "refused";
}

/** Answers an offer. */
export interface OfferAnswerRequest {
  accepts: boolean;
}

/** Content that a merge of an offer would write now. */
export interface OfferPreview {
  authors: OfferedAuthor[];
  carried: number;
  documents: OfferedDocument[];
  files_left: string[];
  kinds: OfferedKind[];
  left: number;
  offer: string;
  posts: OfferedPost[];
}

/** A user who wrote commits that a merge would write again, as the offer says. */
export interface OfferedAuthor {
  author: string;
  author_name: string;
  count: number;
}

/** A document that a merge would change. */
export interface OfferedDocument {
  added: number;
  kind: "set" | "dict" | "text";
  lines: OfferedLine[];
  name: string;
  removed: number;
  title: string;
}

/** A line of a document, before or after a merge. */
export interface OfferedLine {
  change: "added" | "removed" | "same" | "skipped";
  text: string;
}

/** Commits of one kind that a merge would write. */
export interface OfferedKind {
  count: number;
  kind: string;
}

/** A post that a merge would write. That its author wrote it is what the offer says. */
export interface OfferedPost {
  author: string;
  author_name: string;
  text: string;
  time: number;
}

/** Commits that a merge wrote. */
export interface MergeResult {
  branch: string;
  carried: number;
  commit: string | null;
  files_left: string[];
  left: number;
}

/** Writes a comment. */
export interface CommentRequest {
  text: string;
  answers?: string;
}

/** Gives a comment another text. */
export interface CommentEditRequest {
  text: string;
}

/** The accepted comments on a document. */
export interface CommentList {
  cursor: string | null;
  items: CommentView[];
}

/** A comment. */
export interface CommentView {
  answers: string;
  attachments?: Attachment[];
  author: string;
  author_name: string;
  commit: string;
  continues?: BranchHeads;
  damaged?: boolean;
  deleted?: boolean;
  deletes?: string;
  document?: string;
  edited_at?: number;
  edits?: string;
  erased?: boolean;
  files?: string[];
  hidden_by?: string;
  hidden_by_name?: string;
  imported_author?: string;
  kind: string;
  mentions?: Mention[];
  merged?: BranchHeads;
  not_kept?: boolean;
  offer: string;
  origin?: Origin;
  quote: string;
  reply_to?: ReplyTo;
  text: string | null;
  time: number;
  unreadable?: boolean;
}

/** A window of a branch's documents, in the order in which this node learned of them. */
export interface DocumentList {
  branch: string;
  documents: DocumentView[];
  next: number | null;
}

/** A document of a branch. */
export interface DocumentView {
  confusable: boolean;
  entries: number | null;
  kind: string;
  name: string;
  other_titles: string[];
  title: string;
}

/** A document's title. */
export interface DocumentTitle {
  branch: string;
  commits: string[];
  title: string;
}

/** Gives a document a title. */
export interface DocumentTitleRequest {
  kind: string;
  name?: string;
  title?: string;
}

/** A document that was removed. */
export interface DocumentRemoval {
  branch: string;
  commits: string[];
}

/** Leaves a document out of the list. */
export interface DocumentRemovalRequest {
  kind: string;
  name?: string;
}

/** A window of a set, ordered by the UTF-8 bytes of the items. */
export interface SetWindow {
  branch: string;
  items: SetItemView[];
  next: number | null;
  total: number;
}

/** An item of a set. */
export interface SetItemView {
  item: string;
  tips: string[];
}

/** Result of an edit of a set. */
export interface SetEditResult {
  added: string[];
  branch: string;
  commits: string[];
  removed: string[];
}

/** Adds items to a set and removes others. What is in both lists is added. */
export interface SetEditRequest {
  add?: string[];
  remove?: string[];
  name?: string;
}

/** A snapshot of a set or a dict. */
export interface DocumentSnapshot {
  branch: string;
  commits: string[];
}

/** A window of a dict, ordered by the UTF-8 bytes of the keys. */
export interface DictWindow {
  branch: string;
  entries: DictEntryFields[];
  next: number | null;
  total: number;
}

/** An entry of a dict. */
export interface DictEntryFields {
  commit: string;
  conflicts: DictConflict[];
  key: string;
  value: string;
}

/** Another value that was put at the same time. */
export interface DictConflict {
  commit: string;
  value: string;
}

/** An entry of a branch's dict. */
export interface DictEntryView {
  branch: string;
  commit: string;
  conflicts: DictConflict[];
  key: string;
  value: string;
}

/** Result of an edit of a dict. */
export interface DictEditResult {
  branch: string;
  commits: string[];
  erased: string[];
  put: string[];
}

/** Puts values into a dict and erases others. A key in both is put. */
export interface DictEditRequest {
  put?: Record<string, string>;
  erase?: string[];
  name?: string;
}

/** A client id for one editor of a text. */
export interface TextClient {
  branch: string;
  client: number;
  clock: number;
}

/** An update that was pushed: all that it says is in the text. */
export interface TextPush {
  branch: string;
  commit: string | null;
  has: TextClocks[];
}

/** Yjs clock up to which a text shows the updates of one client id. */
export interface TextClocks {
  client: number;
  clock: number;
}

/** Types the text of another Yjs document. */
export interface TextImportRequest {
  update: string;
}

/** A branch's text. */
export interface TextView {
  branch: string;
  faults: TextFaultView[];
  passed_over: number;
  refused: number;
  text: string | null;
  update: string;
  updates: number;
}

/** An update that says nothing, or less than it would. */
export interface TextFaultView {
  commit: string;
  fault: "unreadable" | "other_client" | "used_clocks" | "misplaced";
}

/** Pushes an update to a text. */
export interface TextPushRequest {
  update: string;
  gather?: boolean;
}

/** Updates that an editor lacks of a text, and who else has it open. */
export interface TextChanges {
  branch: string;
  others: PresenceView[];
  update: string;
}

/** An editor that has the text open. */
export interface PresenceView {
  anchor: string;
  client: number;
  clock: number;
  head: string;
  root: string;
  session: string;
  typed: string;
  user: string;
}

/** An update of a text. */
export interface TextUpdateEvent {
  update: string;
}

/** Other editors that have the text open. */
export interface PresenceEvent {
  others: PresenceView[];
}

/** States where the cursor of one editor is, and what is typed there. */
export interface PresenceRequest {
  session: string;
  root: string;
  anchor?: string;
  head?: string;
  typed?: string;
  client?: number;
  clock?: number;
}

/** A JSON document. */
export interface JsonDocumentView {
  branch: string;
  conflict_count: number;
  conflicts: JsonConflictView[];
  unplaced: UnplacedItem[];
  value: unknown;
}

/** A value that was put beside the one that shows. */
export interface JsonConflictView {
  commit: string | null;
  item: string;
  path: string[];
  place: boolean;
  value: unknown;
}

/** An item of no list: its list was removed, or it lies in itself. `move` places it. */
export interface UnplacedItem {
  item: string;
  value: unknown;
}

/** Result of edits of a JSON document. */
export interface JsonEditResult {
  branch: string;
  commits: string[];
  items: string[];
  value: unknown;
}

/** Edits of a JSON document, in their order: all are written, or none. */
export interface JsonEditRequest {
  name?: string;
  preview?: boolean;
  edits: JsonChange[];
}

/** One edit. Its path begins at the item `item`, or at the document. */
export interface JsonChange {
  edit: "add" | "insert" | "move" | "put" | "remove";
  path?: (string | number)[];
  item?: string;
  value?: unknown;
  by?: number;
  moved?: string;
  before?: string;
  after?: string;
  index?: number | null;
}

/** Names a JSON document. */
export interface JsonNameRequest {
  name?: string;
}

/** Documents that a query found, in its order. */
export interface FoundDocuments {
  branch: string;
  cursor: string | null;
  documents: FoundDocument[];
  unreadable: string[];
}

/** A document that a query found. */
export interface FoundDocument {
  branch?: string;
  conflict_count: number;
  key?: string;
  name: string;
  repo?: string;
  value: unknown;
}

/** The result as it is now, for who knows none or an older one. */
export interface ResultEvent {
  documents: FoundDocument[];
}

/** Change of the result since the event before this one. Documents of several branches are named by their keys. */
export interface ResultChangeEvent {
  added: FoundDocument[];
  changed: FoundDocument[];
  moved: string[];
  order: string[];
  removed: string[];
}

/** Documents of several branches that a query found, in its order; equals stand by the ids of their branches. */
export interface FoundAnywhere {
  cursor: string | null;
  documents: FoundDocument[];
  unreadable: number;
}

/** A declared index of JSON documents. */
export interface JsonIndex {
  branch: string;
  fields: string[];
  prefix: string;
  ready: boolean;
}

/** Declares an index. */
export interface JsonIndexRequest {
  prefix?: string;
  fields: string[];
}

/** A window of a branch's files. */
export interface FileList {
  files: FileView[];
  next: number | null;
  refusals: FileRefusal[];
  uses_relays: boolean;
}

/** A file of a branch. Name and size are as its author states them. */
export interface FileView {
  author: string;
  author_name: string;
  commit: string;
  file: string;
  name: string;
  origin?: Origin;
  place?: "only_here" | "here" | "away" | "unknown";
  relays: number;
  size: number | null;
  time: number;
}

/** A relay takes no more files of a branch. */
export interface FileRefusal {
  reason: string;
  relay: string;
}

/** Files that are on the branch, all durable. */
export interface AddedFiles {
  branch: string;
  files: AddedFile[];
}

/** A file of a request to add many. */
export interface AddedFile {
  author: string;
  author_name: string;
  commit: string;
  file: string;
  is_new: boolean;
  name: string;
  origin?: Origin;
  place?: "only_here" | "here" | "away" | "unknown";
  relays: number;
  size: number | null;
  time: number;
}

/** Says what follows it in the body: the content of one file. */
export interface FileHead {
  name: string;
  size: number;
}

/** A file that was removed from a branch. */
export interface RemovedFile {
  commit: string;
  file: string;
  names: string[];
}

/** Result of a batch of files. */
export interface ImportResult {
  already: number;
  heads: number;
  imported: number;
}

/** Imports commits. A batch may be sent again: items that were imported are passed over. */
export interface ImportRequest {
  items: ImportItem[];
  source: string;
}

/** One commit of another system. */
export interface ImportItem {
  id: string;
  parents: string[];
  author: string;
  time: number;
  text: string;
}

/** A window of what was imported from a source. */
export interface ImportedWindow {
  items: string[];
  next: number | null;
}

/** Result of reading a bundle. What it took is durable, and announced to peers. */
export interface BundleReading {
  already: number;
  commits: number;
  left_out: number;
  missing: number;
  refused: number;
  since: number | null;
  taken: number;
  unopened: number;
  waiting: number;
}

/** Adds a peer. */
export interface PeerRequest {
  address: string;
  peer: string;
  relay?: boolean | null;
}

/** Settings of a peer that this node keeps a connection to, from the user or from links. */
export interface PeerSettings {
  address: string;
  from_link: boolean;
  others: string[];
  peer: string;
  relay: boolean;
  repos: string[];
}

/** Settings of a peer, as they were answered. */
export interface PeerSettingsRequest {
  address: string;
  others: string[];
  from_link: boolean;
  relay: boolean;
  repos: string[];
}

/** Ban of a peer. */
export interface PeerBan {
  banned: boolean;
  peer: string;
}

/** Kept data and refusals of a relay, and when it will be full. */
export interface RelayStatus {
  accounts: number;
  blocks_damaged: number;
  circuits: RelayCircuits | null;
  commits: number;
  file_size: number;
  files_kept: number;
  free: number;
  full_first: "quota" | "disk";
  full_in_days: number | null;
  growth: number;
  promised: number;
  refusals: RelayRefusal[];
  size: number;
  size_max: number;
  takes_strangers: boolean;
  topics: number;
  topics_max: number;
  visitors: RelayVisitors[];
}

/** Circuits through a relay. */
export interface RelayCircuits {
  bytes: number;
  bytes_per_second: number;
  open: number;
  open_max: number;
  opened: number;
  peers: number;
}

/** Refusals of a relay since its start. */
export interface RelayRefusal {
  count: number;
  kind: "account" | "partner" | "known" | "stranger";
  last_at: number;
  reason: string;
  what: "topic" | "commits" | "file" | "circuit" | "link";
}

/** Peers of one kind, for a relay's operator. */
export interface RelayVisitors {
  circuit_bytes: number;
  circuits: number;
  connected: number;
  kind: "account" | "partner" | "known" | "stranger";
  peers: number;
  size: number;
}

/** The topics that this node keeps for others. */
export interface RelayedTopicList {
  allowed: string[];
  size: number;
  size_max: number;
  takes_strangers: boolean;
  topics: RelayedTopic[];
}

/** A topic that this node keeps for others. */
export interface RelayedTopic {
  brought_by: string | null;
  commits: number;
  file_size: number;
  known: boolean;
  pinned: boolean;
  shared: boolean;
  size: number;
  topic: string;
  touched_at: number;
}

/** Permission of a peer at this relay. */
export interface RelayAllowance {
  allowed: boolean;
  peer: string;
}

/** The accounts of this relay. */
export interface RelayAccountList {
  accounts: RelayAccount[];
  takes_strangers: boolean;
}

/** An account of this relay. */
export interface RelayAccount {
  circuit_bytes: number;
  circuits: number;
  connected: number;
  created_at: number;
  links: number;
  name: string;
  nodes: string[];
  quota: number;
  used: number;
}

/** A link that gives one node the account, once. */
export interface AccountLink {
  addresses: string[];
  expires_at: number;
  link: string;
  name: string;
  quota: number;
  reach: "machine" | "network" | "anywhere";
}

/** Invites to the account of that name, which is made if there is none, and has this quota from now on. */
export interface AccountInvitation {
  name: string;
  quota: number;
  expires_seconds?: number;
}

/** Changes an account. What is kept stays. */
export interface AccountChange {
  quota: number;
}

/** An account that this node has at a relay. */
export interface JoinedRelay {
  address: string;
  quota: number;
  relay: string;
  used: number;
}

/** Uses a link to a relay's account. */
export interface RelayJoin {
  link: string;
}

/** A token that was made. */
export interface NewToken {
  expires_at: number;
  name: string;
  token: string;
}

/** Makes a token. */
export interface TokenRequest {
  name: string;
  actions: ("admin" | "manage" | "metrics" | "node" | "read" | "write")[];
  repos?: string[];
  branches?: string[];
  origins?: string[];
  expires_seconds?: number;
}

/** The tokens of apps and pages. */
export interface TokenList {
  tokens: TokenView[];
}

/** A token, without its secret. */
export interface TokenView {
  actions: ("admin" | "manage" | "metrics" | "node" | "read" | "write")[];
  branches: TokenBranch[];
  created_at: number | null;
  expired: boolean;
  expires_at: number | null;
  kind: "app" | "page" | "kept" | "browser" | "home";
  last_used_at: number | null;
  made: MadeThing[];
  name: string;
  origins: string[];
  repos: TokenRepo[];
  revoked: boolean;
}

/** A branch that a token is for. */
export interface TokenBranch {
  branch: string;
  name: string | null;
  repo: string;
}

/** Thing that the holder of a token made. */
export interface MadeThing {
  advice: string;
  begun: boolean;
  ended: boolean;
  expires_at: number | null;
  kind: "invitation" | "ask_link" | "read_link" | "branch_link" | "device_link" | "member" | "token" | "browser" | "relay_account" | "peer" | "allowed_peer";
  made_at: number;
  repo: string | null;
  repo_name: string | null;
  what: string;
}

/** A repo that a token is for. */
export interface TokenRepo {
  name: string | null;
  repo: string;
}

/** A token or a browser that was revoked. */
export interface Revoked {
  made: MadeThing[];
}

/** The token of a request, and its user. */
export interface OwnToken {
  actions: ("admin" | "manage" | "metrics" | "node" | "read" | "write")[];
  branches: TokenBranch[];
  created_at: number | null;
  expired: boolean;
  expires_at: number | null;
  kind: "app" | "page" | "kept" | "browser" | "home";
  last_used_at: number | null;
  made: MadeThing[];
  name: string;
  origins: string[];
  repos: TokenRepo[];
  revoked: boolean;
  user: string;
}

/** A code that pairs a browser. */
export interface PairingCode {
  addresses: string[];
  code: string;
  expires_seconds: number;
  fingerprint: string;
}

/** A browser of this machine that stays signed in. */
export interface KeptBrowser {
  expires_at: number;
  name: string;
}

/** Keeps a browser signed in. */
export interface KeepRequest {
  name: string;
}

/** The browsers that stay signed in. */
export interface BrowserList {
  browsers: BrowserView[];
  remote: RemoteView | null;
}

/** A browser that stays signed in. */
export interface BrowserView {
  created_at: number;
  expired: boolean;
  expires_at: number;
  here: boolean;
  last_used_at: number | null;
  made: MadeThing[];
  name: string;
  revoked: boolean;
}

/** Addresses at which browsers of other machines reach the page. */
export interface RemoteView {
  addresses: string[];
  certificate_ends_at: number;
  fingerprint: string;
}

/** All settings. */
export interface SettingList {
  config: string;
  restart_command: string;
  restarts: boolean;
  settings: SettingView[];
}

/** A setting as it holds for the next start. Credentials in it are hidden. */
export interface SettingView {
  about: string;
  choices: string[];
  default: string;
  hidden: boolean;
  kind: "flag" | "list" | "number" | "table" | "text";
  restart: boolean;
  setting: string;
  source: "default" | "file" | "environment" | "option";
  value: string;
  variable: string;
}

/** A setting that was changed in the configuration file. */
export interface SettingChange {
  before: string;
  overridden_by: string | null;
  restart: boolean;
  setting: string;
  value: string;
}

/** Changes a setting. */
export interface SettingChangeRequest {
  value: string;
}

/** Start of the node with its person's login, by systemd. */
export interface StartWithLogin {
  hindrance: "" | "no_systemd" | "environment" | "passphrase";
  starts: boolean;
}

/** Start with the login, or none. */
export interface StartWithLoginRequest {
  starts: boolean;
}

/** A problem that stops the node from working now or soon. */
export interface HealthReport {
  checks: HealthCheck[];
  problems: number;
}

/** One thing that was looked at. */
export interface HealthCheck {
  advice: string;
  detail: string;
  name: string;
  state: "ok" | "problem" | "warning";
}

/** Storage of the node's keys. */
export interface KeyStatus {
  node: string;
  protection: "keyring" | "none" | "passphrase";
  recovered: boolean;
  seal_command: string;
  unused: boolean;
  user: string;
}

/** The user's key. */
export interface KeyWords {
  words: string[];
}

/** Shows the words of the user's key. */
export interface WordsRequest {
  passphrase?: string;
}

/** The user that a node has from now on. */
export interface RecoveredUser {
  user: string;
}

/** Makes a node its user's again, by words or by a key file. */
export interface RecoveryRequest {
  words?: string;
  key_file?: string;
  file_passphrase?: string;
  passphrase?: string;
}

/** The backup that is made, or the last one. */
export interface BackupStatus {
  began_at: number | null;
  error: string;
  files: number;
  finished_at: number | null;
  folder: string;
  restore_command: string;
  running: boolean;
  size: number;
  size_expected: number;
  stop_command: string;
  suggested: string;
}

/** Begins a backup. */
export interface BackupRequest {
  folder: string;
}

/** The report that is made, and the one that is there. */
export interface ReportStatus {
  began_at: number | null;
  error: string;
  finished_at: number | null;
  path: string;
  running: boolean;
  step: "" | "export" | "analyze";
}

export class Ravel {
  /** A JSON document of a branch, whether it has been written to or not. */
  document(branch: string, name?: string, checks?: JsonChecks): JsonDocument;
  /** Writes posts without waiting for each: their answers come in order. */
  writer(branch: string, options?: RequestOptions): PostWriter;
  /** JSON documents of branches (null: all) that have such a name and meet a filter. */
  documents(branch: string | string[] | null | undefined, query?: { prefix?: string; where?: object; sort?: string | string[]; limit?: number; repo?: string }): JsonDocuments;
  // The node
  /** Show the node at a glance. */
  showStatus(values?: {}, options?: RequestOptions): Promise<NodeStatus>;
  /** Show what the store takes on the disk, and how it has grown. */
  showStorage(values?: {}, options?: RequestOptions): Promise<StorageUse>;
  /** Show the latest lines of the daemon's log. */
  showLog(values?: {}, options?: RequestOptions): Promise<LogLines>;
  /** Show peers and repos, or follow them as they change. */
  followNode(values?: { changes?: boolean }, options?: RequestOptions): Promise<NodeLists>;
  watchNode(values?: { changes?: boolean }, options?: StreamOptions): AsyncGenerator<{ name: "peers"; id: string; data: PeerList } | { name: "repos"; id: string; data: RepoList }>;
  /** Export what is new. The answer comes when it is written. */
  exportStore(values?: {}, options?: RequestOptions): Promise<ExportResult>;
  /** Show when the export that is there was made, and its size. */
  showExport(values?: {}, options?: RequestOptions): Promise<ExportView>;
  /** Make a path at which a browser saves the export as a ZIP file, once. */
  makeExportCode(values?: {}, options?: RequestOptions): Promise<PageCode>;
  /** Make a code by which a web page gets a token of its own, once. */
  makePageCode(values?: {}, options?: RequestOptions): Promise<PageCode>;
  /** Draw a QR code of a link. */
  drawQr(values: {} & QrRequest, options?: RequestOptions): Promise<QrCode>;
  /** Describe this API: an OpenAPI 3.1 document. */
  describeApi(values?: {}, options?: RequestOptions): Promise<Record<string, unknown>>;
  // Repos
  /** List the repos of this node. */
  listRepos(values?: { since?: string }, options?: RequestOptions): Promise<RepoList>;
  /** Create a repo with a branch `main`. */
  createRepo(values: {} & RepoRequest, options?: RequestOptions): Promise<RepoView>;
  /** Show the content of a link, before you use it. The node asks no peer and stores nothing. */
  lookAtLink(values: {} & LookRequest, options?: RequestOptions): Promise<LinkView>;
  /** Join a repo by a bearer link, or ask to be let in by a link that asks. */
  joinRepo(values: {} & JoinRequest, options?: RequestOptions): Promise<RepoView>;
  /** Read and replicate a repo, or one of its branches, by a read capability. */
  followRepo(values: {} & FollowRequest, options?: RequestOptions): Promise<RepoView>;
  /** Create a repo of this user that continues another. */
  forkRepo(values: { repo: string } & NameRequest, options?: RequestOptions): Promise<RepoFork>;
  /** List who has what of a repo: peers that follow it now, and those that were seen to hold all of it. */
  listHolders(values: { repo: string }, options?: RequestOptions): Promise<HolderList>;
  /** Show which contents of a repo this node keeps. */
  showKeeping(values: { repo: string; last_days?: number }, options?: RequestOptions): Promise<RepoKeeping>;
  /** Keep contents of some branches of a repo alone on this node, of posts of some days, and of files, or all. */
  setKeeping(values: { repo: string } & KeepingRequest, options?: RequestOptions): Promise<RepoKeeping>;
  /** Delete a repo from this node, with all its commits. */
  forgetRepo(values: { repo: string; accept_loss?: boolean }, options?: RequestOptions): Promise<Empty>;
  /** Make a link that lets anyone read a repo. */
  shareRepo(values: { repo: string }, options?: RequestOptions): Promise<Capability>;
  /** List the epochs of a repo. */
  listEpochs(values: { repo: string }, options?: RequestOptions): Promise<EpochList>;
  /** Give a repo new secrets, sealed for exactly its members. */
  startEpoch(values: { repo: string }, options?: RequestOptions): Promise<NewEpoch>;
  /** State a fresh key of this user, to which later epochs are sealed. */
  statePrekey(values: { repo: string }, options?: RequestOptions): Promise<FreshKey>;
  /** List the named commits of a repo. */
  listTags(values: { repo: string }, options?: RequestOptions): Promise<TagList>;
  /** Name a commit, or move a name to it. */
  setTag(values: { repo: string; name: string } & TagRequest, options?: RequestOptions): Promise<RootCommit>;
  /** Remove the name of a commit. */
  removeTag(values: { repo: string; name: string }, options?: RequestOptions): Promise<RootCommit>;
  // Members
  /** List the members of a repo and what they may do. */
  listMembers(values: { repo: string }, options?: RequestOptions): Promise<MemberList>;
  /** List who came to a repo, left, was excluded, may do something else or has another name. */
  listMemberChanges(values: { repo: string; limit?: number; since?: number }, options?: RequestOptions): Promise<MemberChangeList>;
  /** Make a user a member, or raise a member's permission. */
  grantPermission(values: { repo: string } & GrantRequest, options?: RequestOptions): Promise<MembershipChange>;
  /** Exclude a member, or lower a member's permission. */
  removeMember(values: { repo: string } & RemovalRequest, options?: RequestOptions): Promise<RemovalResult>;
  /** Stop being a member of a repo. */
  leaveRepo(values: { repo: string } & LeaveRequest, options?: RequestOptions): Promise<LeaveResult>;
  /** List the invitations of a repo. */
  listInvitations(values: { repo: string }, options?: RequestOptions): Promise<InvitationList>;
  /** Make an invitation link. */
  createInvitation(values: { repo: string } & InvitationRequest, options?: RequestOptions): Promise<InvitationLinkView>;
  /** End an invitation. */
  revokeInvitation(values: { repo: string; invitation: string }, options?: RequestOptions): Promise<MembershipChange>;
  /** Make void commits of a branch count again. */
  adoptCommits(values: { branch: string } & AdoptionRequest, options?: RequestOptions): Promise<MembershipChange>;
  /** List who signed who the members are, and who signed something false. */
  listCheckpoints(values: { repo: string }, options?: RequestOptions): Promise<CheckpointList>;
  /** Sign who the members are, what they may do, and which secrets are theirs, for others to compare. */
  signMembers(values: { repo: string }, options?: RequestOptions): Promise<RootCommit>;
  // Requests to join
  /** Make a link by which users ask to be let into a repo. It has no secret of the repo. */
  makeAskLink(values: { repo: string } & AskLinkRequest, options?: RequestOptions): Promise<AskLinkMade>;
  /** List the links by which users ask to be let into a repo. */
  listAskLinks(values: { repo: string }, options?: RequestOptions): Promise<AskLinkList>;
  /** End a link by which users ask. Who asked by it and has no answer is not accepted any more. */
  closeAskLink(values: { repo: string; lobby: string }, options?: RequestOptions): Promise<AskLinkList>;
  /** List who asks to be let into a repo. */
  listRequests(values: { repo: string }, options?: RequestOptions): Promise<RequestList>;
  /** List who asks to be let into any repo, and what this user asked for. */
  listAllRequests(values?: {}, options?: RequestOptions): Promise<RequestList>;
  /** Accept a request, which makes the user a member, or refuse it. */
  answerRequest(values: { repo: string; request: string } & RequestAnswerRequest, options?: RequestOptions): Promise<RequestView>;
  /** Take back a request of this user, named by its repo. */
  cancelRequest(values: { request: string }, options?: RequestOptions): Promise<RequestList>;
  // People
  /** Show what this user calls itself, and in which repos others see it. */
  showMe(values?: {}, options?: RequestOptions): Promise<OwnName>;
  /** State what this user calls itself, in all repos where it may write, now and later. */
  stateMe(values: {} & OwnNameRequest, options?: RequestOptions): Promise<OwnName>;
  /** List what this user calls others. These names are on this node alone. */
  listPetnames(values?: {}, options?: RequestOptions): Promise<PetnameList>;
  /** Name a user or a node on this node, or take the name away. It goes before what a user calls itself. */
  setPetname(values: {} & PetnameRequest, options?: RequestOptions): Promise<Petname>;
  // Devices
  /** List the devices of this user's person, and how each stands in the repos. */
  listDevices(values?: {}, options?: RequestOptions): Promise<DeviceList>;
  /** Make a link by which another user becomes a device of this one. */
  inviteDevice(values?: {} & DeviceInvitationRequest, options?: RequestOptions): Promise<DeviceLinkView>;
  /** Become a device of the person who made a link. */
  joinAsDevice(values: {} & DeviceJoinRequest, options?: RequestOptions): Promise<DeviceList>;
  /** Hand on again, as the first device, what other devices lack. */
  syncDevices(values?: {}, options?: RequestOptions): Promise<DeviceSync>;
  /** Take a device out of all repos, and take back that it is the same person's. */
  removeDevice(values: { device: string }, options?: RequestOptions): Promise<RemovedDevice>;
  /** Pass this user's place to a device in all repos. This user is no member any more. */
  promoteDevice(values: { device: string }, options?: RequestOptions): Promise<PromotedDevice>;
  // Recovery by friends
  /** List this user's recovery friends, and the members who named this user as one. */
  listFriends(values?: {}, options?: RequestOptions): Promise<RecoveryList>;
  /** Name the friends who together may let a new key of this user in. */
  nameFriends(values: {} & FriendsRequest, options?: RequestOptions): Promise<NamedFriends>;
  /** Sign, as a friend, that a key is a member's new one. */
  signRecovery(values: {} & RecoverySignRequest, options?: RequestOptions): Promise<RecoverySignatures>;
  /** Let a key in that enough friends of a member have signed for. */
  finishRecovery(values: {} & RecoveryTextsRequest, options?: RequestOptions): Promise<RecoveryResult>;
  // Quorums
  /** Show the quorums in force and the latest proposals. */
  showQuorum(values: { repo: string }, options?: RequestOptions): Promise<QuorumState>;
  /** Set who must approve checkpoints and, optionally, removals. */
  setQuorum(values: { repo: string } & QuorumRequest, options?: RequestOptions): Promise<RootCommit>;
  /** Ask the signers to exclude a member, or to lower a member's permission. */
  proposeRemoval(values: { repo: string } & RemovalProposalRequest, options?: RequestOptions): Promise<Proposal>;
  /** Ask the signers for a checkpoint of a branch as it is now. */
  proposeCheckpoint(values: { branch: string }, options?: RequestOptions): Promise<Proposal>;
  /** Sign a proposal. The last approval that a checkpoint lacks makes it. */
  approveProposal(values: { repo: string; proposal: string }, options?: RequestOptions): Promise<Proposal>;
  /** Make a checkpoint that enough signers have approved. */
  makeCheckpoint(values: { repo: string; proposal: string }, options?: RequestOptions): Promise<Proposal>;
  // Branches
  /** List the branches of a repo. */
  listBranches(values: { repo: string }, options?: RequestOptions): Promise<BranchList>;
  /** Add a branch to a repo. */
  createBranch(values: { repo: string } & NameRequest, options?: RequestOptions): Promise<BranchView>;
  /** Rename a branch, archive it, or take it back from the archive. */
  editBranch(values: { branch: string } & BranchEditRequest, options?: RequestOptions): Promise<RootCommit>;
  /** Point main at a branch: from then on the name `main` means it. */
  pointMain(values: { branch: string }, options?: RequestOptions): Promise<RootCommit>;
  /** Add a branch that continues another one. */
  forkBranch(values: { branch: string } & ForkRequest, options?: RequestOptions): Promise<BranchView>;
  /** Write again in a branch what another branch has and it has not. */
  mergeBranch(values: { branch: string } & MergeRequest, options?: RequestOptions): Promise<BranchMerge>;
  /** Make a link that lets anyone read one branch. */
  shareBranch(values: { branch: string }, options?: RequestOptions): Promise<Capability>;
  /** Compact a branch, so that nodes may erase bodies that its documents no longer need. */
  compactBranch(values: { branch: string } & CompactRequest, options?: RequestOptions): Promise<CompactionResult>;
  // Commits
  /** Write a post on the heads of a branch. It is durable when the answer comes. */
  writePost(values: { branch: string } & PostRequest, options?: RequestOptions): Promise<WrittenCommitView>;
  /** Write many posts, each following the one before it. All are durable when the answer comes. */
  writePosts(values: { branch: string } & PostsRequest, options?: RequestOptions): Promise<WrittenPosts>;
  /** Show a commit with all it states. */
  showCommit(values: { commit: string }, options?: RequestOptions): Promise<CommitView>;
  /** Explain the verdict on a commit: the rule and the commits that decide it. */
  explainVerdict(values: { commit: string }, options?: RequestOptions): Promise<VerdictView>;
  /** List the void commits of a branch, and why they are void. */
  listVoids(values: { branch: string }, options?: RequestOptions): Promise<VoidList>;
  // Posts
  /** Write a reply to a post, in its branch. */
  replyToPost(values: { commit: string } & PostRequest, options?: RequestOptions): Promise<WrittenPost>;
  /** Give a post of one's own another text. Earlier ones stay readable until they are erased. */
  editPost(values: { commit: string } & PostTextRequest, options?: RequestOptions): Promise<WrittenPost>;
  /** Delete a post of one's own for good, and remove its files. What it said stays readable until it is erased. */
  deletePost(values: { commit: string }, options?: RequestOptions): Promise<WrittenPost>;
  /** Hide a post from the timelines of all members, or show it again. */
  hidePost(values: { commit: string } & HideRequest, options?: RequestOptions): Promise<HiddenPost>;
  /** Show what a post said over time: the last versions that count, also of a deleted or hidden post. */
  showVersions(values: { commit: string; limit?: number; before?: string }, options?: RequestOptions): Promise<PostVersions>;
  /** Show the thread of a post: the first post, and the replies. */
  showThread(values: { commit: string; limit?: number; after?: string }, options?: RequestOptions): Promise<Thread>;
  // Timelines
  /** Show a window of a branch's timeline. */
  showTimeline(values: { branch: string; limit?: number; order?: string; after_position?: number; before_position?: number; after?: string; before?: string; since?: number }, options?: RequestOptions): Promise<TimelineWindow>;
  /** Show edits of a branch's timeline, or follow them as they come. */
  followEdits(values: { branch: string; since?: string; positions?: boolean; limit?: number }, options?: RequestOptions): Promise<EditWindow>;
  watchEdits(values: { branch: string; since?: string; positions?: boolean; limit?: number }, options?: StreamOptions): AsyncGenerator<{ name: "edit"; id: string; data: EditView } | { name: "reset"; id: string; data: ResetEvent }>;
  /** Show the digest of a branch's whole timeline. */
  showDigest(values: { branch: string }, options?: RequestOptions): Promise<TimelineDigest>;
  /** Show the last commits of a branch and of what it continues. */
  showState(values: { branch: string; limit?: number; kind?: string }, options?: RequestOptions): Promise<BranchState>;
  /** Show a branch as it was at a commit: the last commits of its past. */
  showPast(values: { branch: string; commit: string; limit?: number }, options?: RequestOptions): Promise<PastCommits>;
  /** List the feeds of a branch, and the places that an author used more than once. */
  checkFeeds(values: { branch: string }, options?: RequestOptions): Promise<FeedCheck>;
  /** Show the end of a tangle of a repo. */
  showTangle(values: { repo: string; kind: string; limit?: number; branch?: string; author?: string; epoch?: string; message?: string; name?: string }, options?: RequestOptions): Promise<TangleView>;
  // Search
  /** Search posts, names of files, texts, and names of branches and tags. */
  search(values?: { text?: string; repo?: string; branch?: string; author?: string; since?: number; until?: number; limit?: number; after?: string }, options?: RequestOptions): Promise<SearchResult>;
  // Unseen commits
  /** List branches with commits of others that the user has not seen, archived ones left out. */
  listUnseen(values?: {}, options?: RequestOptions): Promise<UnseenList>;
  /** Show which commits of a branch the user has not seen. */
  showUnseen(values: { branch: string }, options?: RequestOptions): Promise<UnseenCommitList>;
  /** Have a branch seen up to a moment. Only this node knows. */
  markSeen(values: { branch: string } & SeenRequest, options?: RequestOptions): Promise<Empty>;
  // Inbox
  /** List what was offered to a repo last. */
  listOffers(values: { repo: string; limit?: number; status?: string }, options?: RequestOptions): Promise<OfferList>;
  /** Offer a branch of another repo to this branch. */
  makeOffer(values: { branch: string } & OfferRequest, options?: RequestOptions): Promise<OfferMade>;
  /** Accept an offer, refuse it, or withdraw it. */
  answerOffer(values: { repo: string; offer: string } & OfferAnswerRequest, options?: RequestOptions): Promise<OfferAnswer>;
  /** Have this node alone follow the branch of an offer of commits, to look at it before it is answered. */
  fetchOffer(values: { repo: string; offer: string }, options?: RequestOptions): Promise<Empty>;
  /** Show what a merge of an offer would write, once it is accepted and as far as it is here. */
  previewOffer(values: { repo: string; offer: string }, options?: RequestOptions): Promise<OfferPreview>;
  /** Write again in its branch what an accepted offer has and the branch has not. */
  mergeOffer(values: { repo: string; offer: string }, options?: RequestOptions): Promise<MergeResult>;
  /** Comment on a document, and offer the comment to its inbox. */
  writeComment(values: { branch: string } & CommentRequest, options?: RequestOptions): Promise<OfferAnswer>;
  /** Give a comment of this user another text, and offer that. */
  editComment(values: { branch: string; comment: string } & CommentEditRequest, options?: RequestOptions): Promise<OfferAnswer>;
  /** Delete a comment of this user. */
  deleteComment(values: { branch: string; comment: string }, options?: RequestOptions): Promise<OfferAnswer>;
  /** Ask that this user's comments on a document are shown at once. */
  askTrust(values: { branch: string }, options?: RequestOptions): Promise<OfferMade>;
  /** List the accepted comments on a document. */
  listComments(values: { branch: string; limit?: number; cursor?: string }, options?: RequestOptions): Promise<CommentList>;
  // Documents
  /** List the documents of a branch. */
  listDocuments(values: { branch: string; kind?: string; prefix?: string; offset?: number; limit?: number }, options?: RequestOptions): Promise<DocumentList>;
  /** Give a document a title. Its name stays. */
  renameDocument(values: { branch: string } & DocumentTitleRequest, options?: RequestOptions): Promise<DocumentTitle>;
  /** Hide a document from the list. Its next write shows it again. */
  removeDocument(values: { branch: string } & DocumentRemovalRequest, options?: RequestOptions): Promise<DocumentRemoval>;
  // Sets, dicts and texts
  /** Show a window of a branch's set. */
  showSet(values: { branch: string; name?: string; offset?: number; limit?: number }, options?: RequestOptions): Promise<SetWindow>;
  /** Add items to a branch's set, and remove others. */
  editSet(values: { branch: string } & SetEditRequest, options?: RequestOptions): Promise<SetEditResult>;
  /** Compact a set's history. Its content does not change. */
  snapshotSet(values: { branch: string; name?: string }, options?: RequestOptions): Promise<DocumentSnapshot>;
  /** Show a window of a branch's dict. */
  showDict(values: { branch: string; name?: string; offset?: number; limit?: number }, options?: RequestOptions): Promise<DictWindow>;
  /** Show one entry of a branch's dict. */
  showEntry(values: { branch: string; key?: string; name?: string }, options?: RequestOptions): Promise<DictEntryView>;
  /** Put values into a branch's dict, and erase others. */
  editDict(values: { branch: string } & DictEditRequest, options?: RequestOptions): Promise<DictEditResult>;
  /** Compact a dict's history. Its content does not change. */
  snapshotDict(values: { branch: string; name?: string }, options?: RequestOptions): Promise<DocumentSnapshot>;
  /** Get a Yjs client id for an editor of a branch's text. */
  openText(values: { branch: string }, options?: RequestOptions): Promise<TextClient>;
  /** Type the text of another Yjs document at the end of a branch's text. */
  importText(values: { branch: string } & TextImportRequest, options?: RequestOptions): Promise<TextPush>;
  /** Show a branch's text as one Yjs update and, optionally, as plain text. */
  pullText(values: { branch: string; root?: string }, options?: RequestOptions): Promise<TextView>;
  /** Write a Yjs update to a branch's text. */
  pushText(values: { branch: string } & TextPushRequest, options?: RequestOptions): Promise<TextPush>;
  /** Show what an editor lacks of a branch's text, or follow it as it changes. */
  followText(values: { branch: string; vector?: string; session?: string }, options?: RequestOptions): Promise<TextChanges>;
  watchText(values: { branch: string; vector?: string; session?: string }, options?: StreamOptions): AsyncGenerator<{ name: "update"; id: string; data: TextUpdateEvent } | { name: "whole"; id: string; data: TextUpdateEvent } | { name: "presence"; id: string; data: PresenceEvent }>;
  /** Tell other editors of a branch's text that one has it open, and where its cursor is. */
  tellPresence(values: { branch: string } & PresenceRequest, options?: RequestOptions): Promise<Empty>;
  // JSON documents
  /** Show a JSON document of a branch, or follow it: the whole of it whenever it has changed. */
  followJson(values: { branch: string; name?: string }, options?: RequestOptions): Promise<JsonDocumentView>;
  watchJson(values: { branch: string; name?: string }, options?: StreamOptions): AsyncGenerator<{ name: "document"; id: string; data: JsonDocumentView }>;
  /** Edit a JSON document of a branch. */
  editJson(values: { branch: string } & JsonEditRequest, options?: RequestOptions): Promise<JsonEditResult>;
  /** Compact a JSON document's history. Its content does not change. */
  snapshotJson(values: { branch: string } & JsonNameRequest, options?: RequestOptions): Promise<DocumentSnapshot>;
  /** Find JSON documents of a branch by name and fields, or follow what a query finds. */
  followJsonDocuments(values: { branch: string; prefix?: string; where?: string; sort?: string; cursor?: string; limit?: number }, options?: RequestOptions): Promise<FoundDocuments>;
  watchJsonDocuments(values: { branch: string; prefix?: string; where?: string; sort?: string; cursor?: string; limit?: number }, options?: StreamOptions): AsyncGenerator<{ name: "result"; id: string; data: ResultEvent } | { name: "changes"; id: string; data: ResultChangeEvent }>;
  /** Find JSON documents of several branches by name and fields, in one order, or follow what a query finds. */
  followJsonAnywhere(values?: { branches?: string; repo?: string; prefix?: string; where?: string; sort?: string; cursor?: string; limit?: number }, options?: RequestOptions): Promise<FoundAnywhere>;
  watchJsonAnywhere(values?: { branches?: string; repo?: string; prefix?: string; where?: string; sort?: string; cursor?: string; limit?: number }, options?: StreamOptions): AsyncGenerator<{ name: "result"; id: string; data: ResultEvent } | { name: "changes"; id: string; data: ResultChangeEvent }>;
  /** Declare an index of the JSON documents of a branch, on this node. */
  declareJsonIndex(values: { branch: string } & JsonIndexRequest, options?: RequestOptions): Promise<JsonIndex>;
  // Files and imports
  /** List the files of a branch, window by window. */
  listFiles(values: { branch: string; after?: number; limit?: number; places?: boolean }, options?: RequestOptions): Promise<FileList>;
  /** Add a file to a branch. It is durable when the answer comes. */
  addFile(values: { branch: string; name: string } & { content: Blob | ArrayBuffer | Uint8Array | string | ReadableStream<Uint8Array> }, options?: RequestOptions): Promise<FileView>;
  /** Add many files to a branch, all or none. They are durable when the answer comes. */
  addFiles(values: { branch: string } & { files: { name: string; content: Blob | ArrayBuffer | Uint8Array | string }[] }, options?: RequestOptions): Promise<AddedFiles>;
  /** Read a file, whole or one range of its bytes. */
  getFile(values: { branch: string; file: string }, options?: RequestOptions): Promise<Download>;
  /** Remove a file from a branch. Its content stays on the nodes that have it. */
  removeFile(values: { branch: string; file: string }, options?: RequestOptions): Promise<RemovedFile>;
  /** Import a batch of another system's commits. */
  importCommits(values: { branch: string } & ImportRequest, options?: RequestOptions): Promise<ImportResult>;
  /** List the ids that this node imported from a source. */
  listImported(values: { branch: string; source?: string; after?: number; limit?: number }, options?: RequestOptions): Promise<ImportedWindow>;
  // Bundles
  /** Write a bundle of a repo: its publications, sealed as peers exchange them. */
  writeBundle(values: { repo: string; since?: number; branches?: string }, options?: RequestOptions): Promise<ReadableStream<Uint8Array>>;
  /** Read a bundle: take what it carries of this node's repos. */
  readBundle(values: {} & { content: Blob | ArrayBuffer | Uint8Array | string | ReadableStream<Uint8Array> }, options?: RequestOptions): Promise<BundleReading>;
  // Peers and relays
  /** List peers, learned addresses and banned peers. */
  listPeers(values?: {}, options?: RequestOptions): Promise<PeerList>;
  /** Keep a connection to a peer, at this address too. */
  addPeer(values: {} & PeerRequest, options?: RequestOptions): Promise<PeerView>;
  /** Show what a user or links asked for of a peer that this node keeps a connection to. */
  showPeer(values: { peer: string }, options?: RequestOptions): Promise<PeerSettings>;
  /** Keep a connection to a peer, of the full id, with just these settings: to take back its removal. */
  restorePeer(values: { peer: string } & PeerSettingsRequest, options?: RequestOptions): Promise<PeerView>;
  /** Disconnect from a peer and stop dialing it. */
  removePeer(values: { peer: string }, options?: RequestOptions): Promise<Empty>;
  /** Disconnect from a peer, and neither dial nor serve it. */
  banPeer(values: { peer: string }, options?: RequestOptions): Promise<PeerBan>;
  /** Let a banned peer connect again. */
  unbanPeer(values: { peer: string }, options?: RequestOptions): Promise<PeerBan>;
  /** Show the accounts that this relay keeps data for, its refusals, and when it will be full. */
  showRelay(values?: {}, options?: RequestOptions): Promise<RelayStatus>;
  /** List the topics that this node keeps for others, and the room that they take. */
  listRelayedTopics(values?: {}, options?: RequestOptions): Promise<RelayedTopicList>;
  /** Never delete a topic to make room. A full id may name a topic that is not here yet. */
  pinTopic(values: { topic: string }, options?: RequestOptions): Promise<RelayedTopic>;
  /** Let a topic be deleted to make room, like others. */
  unpinTopic(values: { topic: string }, options?: RequestOptions): Promise<RelayedTopic>;
  /** Make a peer a known peer of this relay, by its full id. */
  allowPeer(values: { peer: string }, options?: RequestOptions): Promise<RelayAllowance>;
  /** Make a peer unknown to this relay. */
  denyPeer(values: { peer: string }, options?: RequestOptions): Promise<RelayAllowance>;
  // Accounts at relays
  /** List the accounts of this relay, with their quotas and what they use. */
  listRelayAccounts(values?: {}, options?: RequestOptions): Promise<RelayAccountList>;
  /** Make a link that gives one node an account at this relay. */
  inviteToRelay(values: {} & AccountInvitation, options?: RequestOptions): Promise<AccountLink>;
  /** Change an account's quota. */
  changeRelayAccount(values: { account: string } & AccountChange, options?: RequestOptions): Promise<RelayAccount>;
  /** Forget an account. Its nodes are strangers again, and what they brought stays until there is no room. */
  revokeRelayAccount(values: { account: string }, options?: RequestOptions): Promise<Empty>;
  /** Use a link to a relay's account: connect to the relay, and have it keep all that this node follows. */
  joinRelay(values: {} & RelayJoin, options?: RequestOptions): Promise<JoinedRelay>;
  // Tokens
  /** Make a token for an app. */
  createToken(values: {} & TokenRequest, options?: RequestOptions): Promise<NewToken>;
  /** List tokens with what they may do and when they were last used. */
  listTokens(values?: {}, options?: RequestOptions): Promise<TokenList>;
  /** Revoke a token, at once and for good. */
  revokeToken(values: { token: string; made?: boolean }, options?: RequestOptions): Promise<Revoked>;
  /** Show the token that this request carries, and the user that it acts for. */
  showToken(values?: {}, options?: RequestOptions): Promise<OwnToken>;
  // Browsers
  /** Make a code by which a browser of another machine gets a token of its own, once. */
  makePairingCode(values?: {}, options?: RequestOptions): Promise<PairingCode>;
  /** Have the page that asks stay signed in, so that its address works as a bookmark. */
  keepBrowser(values: {} & KeepRequest, options?: RequestOptions): Promise<KeptBrowser>;
  /** List browsers that stay signed in with when they last came, and where others reach this node. */
  listBrowsers(values?: {}, options?: RequestOptions): Promise<BrowserList>;
  /** Sign a browser out, at once and for good. */
  revokeBrowser(values: { browser: string; made?: boolean }, options?: RequestOptions): Promise<Revoked>;
  // Care
  /** List all settings as they hold for the next start, and where each comes from. */
  listSettings(values?: {}, options?: RequestOptions): Promise<SettingList>;
  /** Change a setting in the configuration file, whose comments stay. */
  changeSetting(values: { setting: string } & SettingChangeRequest, options?: RequestOptions): Promise<SettingChange>;
  /** End the daemon, for the service of `ravel up --service` to start it again. */
  restartNode(values?: {}, options?: RequestOptions): Promise<Empty>;
  /** Show whether the node starts with its person's login. */
  showStartWithLogin(values?: {}, options?: RequestOptions): Promise<StartWithLogin>;
  /** Have systemd start the node with its person's login, or no more. */
  startWithLogin(values: {} & StartWithLoginRequest, options?: RequestOptions): Promise<StartWithLogin>;
  /** Find what stops the node from working now or soon, as `ravel doctor` does. */
  checkHealth(values?: {}, options?: RequestOptions): Promise<HealthReport>;
  /** Show how the keys are kept. */
  showKeys(values?: {}, options?: RequestOptions): Promise<KeyStatus>;
  /** Show the user's key as 24 words, to be written on paper. */
  showKeyWords(values?: {} & WordsRequest, options?: RequestOptions): Promise<KeyWords>;
  /** Be the user of 24 words or of a key file from now on, instead of one whose key is unused. */
  recoverUser(values?: {} & RecoveryRequest, options?: RequestOptions): Promise<RecoveredUser>;
  /** Begin a backup in a folder of the node's machine. It has all keys. */
  startBackup(values: {} & BackupRequest, options?: RequestOptions): Promise<BackupStatus>;
  /** Show how the backup goes, or how the last one went. */
  showBackup(values?: {}, options?: RequestOptions): Promise<BackupStatus>;
  /** Begin to export what is new and to analyze it on this machine. */
  makeReport(values?: {}, options?: RequestOptions): Promise<ReportStatus>;
  /** Show how the report goes, and when the one that is there was made. */
  showReport(values?: {}, options?: RequestOptions): Promise<ReportStatus>;
  /** Make a path that shows the report in a frame, once. */
  openReport(values?: {}, options?: RequestOptions): Promise<PageCode>;
}
