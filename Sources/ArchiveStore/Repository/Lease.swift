internal import Codecs
internal import Synchronization
internal import SystemIO

/// The sign of a program that is changing a repository, or reading much of it: a directory, or a
/// prefix in a store without rename. It holds the program's unfinished objects, and shows a prune
/// that the program is active (docs/repository-format.md, "Leases").
///
/// Safe to use from any thread. It is released on deinitialization.
final class Lease: Sendable {
  let storage: RepositoryStorage
  private let form: any LeaseForm
  private let state: Mutex<State>
  private let clock: @Sendable () -> Double

  private struct State {
    var path = Lease.newPath()
    var lastTouch: Double
    /// The time at which the last successful heartbeat was sent.
    var lastBeat: Double
    /// Whether another program may have taken the lease away in the meantime, or has.
    var hasLapsed = false
    var isHeld = true
    /// Whether a thread found that another program removed the lease.
    var isLost = false
    /// The number of reasons for which the directory stays after the release.
    var reasonsToStay = 0
    /// Whether another program was seen to have marked the lease as dead.
    var isDead = false
    /// The names of the signs that this program has put.
    var signs: Set<ByteString> = []
    /// Objects elsewhere that are no longer needed, and are removed with the lease.
    var leftovers: [ObjectPath] = []
    /// The number of index objects, snapshots and other objects that were sent and whose result is
    /// unknown or a failure: the store may still save them later.
    var unanswered = 0
  }

  /// The interval in seconds at which `alive` is touched, and the age in seconds at which prune
  /// removes a lease.
  static let touchInterval = 60.0
  static let patience = 3600.0

  /// The object that is touched.
  static let alive: ByteString = "alive"

  /// The path of the lease. It changes only when the lease is renewed.
  var path: ObjectPath { state.withLock(\.path) }

  /// Returns the path of a new lease.
  static func newPath() -> ObjectPath {
    RepositoryLayout.leases.appending(ByteString(Host.randomHex(bytes: 16)))
  }

  /// Takes a lease.
  ///
  /// - Parameters:
  ///   - signs: further signs that it has from the beginning.
  ///   - clock: the seconds of a clock that also runs while the host is suspended.
  init(
    _ storage: RepositoryStorage, with signs: [ByteString] = [],
    clock: @escaping @Sendable () -> Double = Host.bootSeconds
  ) throws(StoreError) {
    self.clock = clock
    self.storage = storage
    form = storage.leases
    let now = clock()
    state = Mutex(State(lastTouch: now, lastBeat: now))
    try begin(with: signs)
  }

  private func begin(with signs: [ByteString] = []) throws(StoreError) {
    try form.make(path)
    try put(signs: form.firstSigns + signs)
  }

  /// Puts signs into the lease, or updates their times.
  func put(signs names: [ByteString]) throws(StoreError) {
    let path = state.withLock { state in
      state.signs.formUnion(names)
      return state.path
    }
    try explained { () throws(StoreError) in
      try storage.touch(names.map { path.appending($0) })
    }
  }

  /// Whether another program marked the lease as dead. Only a store without rename has to be asked
  /// for that.
  func isDead() throws(StoreError) -> Bool {
    let path = path
    let isDead = try form.isDead(path)
    if isDead { state.withLock { if $0.path == path { $0.isDead = true } } }
    return isDead
  }

  /// Removes an index object that was put too late, when the packs that it names may be gone.
  ///
  /// - Throws: `leaseLost` if the lease is dead.
  func requireAlive(afterPutting index: ObjectPath) throws(StoreError) {
    guard try isDead() else { return }
    // If it stays, packs that it names are reported as missing: a repair drops these entries.
    try? storage.remove(index)
    throw Self.lost(storage.location)
  }

  /// Takes a new lease in place of a dead one. What the program relies on must be checked again
  /// afterwards.
  func renew(with signs: [ByteString] = []) throws(StoreError) {
    let now = clock()
    state.withLock { state in
      (state.path, state.lastTouch) = (Self.newPath(), now)
      (state.signs, state.isDead, state.hasLapsed) = ([], false, true)
    }
    try begin(with: signs)
    state.withLock { ($0.isHeld, $0.isLost, $0.lastBeat) = (true, false, now) }
  }

  deinit { release() }

  /// Updates the heartbeat if it is a minute old. Cheap enough to call often.
  func keepAlive() throws(StoreError) { _ = try touchIfDue() }

  /// Updates the heartbeat if it is a minute old. Returns whether it was.
  ///
  /// - Throws: `leaseLost` if the lease is known to be gone, and failures of the storage.
  func touchIfDue() throws(StoreError) -> Bool {
    let now = clock()
    let (isDue, isLost) = state.withLock { state in
      guard now - state.lastTouch >= Self.touchInterval else { return (false, state.isLost) }
      state.lastTouch = now
      return (true, state.isLost)
    }
    if isLost { throw Self.lost(storage.location) }
    if isDue { try beat() }
    return isDue
  }

  /// Updates the heartbeat. In a store without rename it may be refused to a user who may not
  /// replace objects: then the lease expires, and a commit after that takes a new one.
  private func beat() throws(StoreError) {
    do { try touchAlive() } catch {
      guard !storage.canRename, error.cause?.isRefused == true else { throw error }
    }
  }

  /// Updates the heartbeat now.
  func touchAlive() throws(StoreError) {
    let sent = clock()
    try put(signs: [Self.alive])
    let answered = clock()
    state.withLock { state in
      if answered - state.lastBeat >= Self.certainTime { state.hasLapsed = true }
      state.lastBeat = sent
    }
  }

  /// Records that this writer has seen condemned objects and relies on none of their packs.
  func recordSeen(_ condemned: [Digest]) throws(StoreError) {
    if condemned.isEmpty { return }
    try put(signs: condemned.map { ByteString(Self.seenPrefix + $0.hex) })
  }

  /// The beginning of the name of an empty file that names a condemned object.
  static let seenPrefix = "seen-"

  /// The empty file in the lease of a program that stores nothing.
  static let readerSign: ByteString = "reader"

  /// Whether a name in a lease's directory is a signal to other programs, not an unfinished object.
  static func isSign(_ name: ByteString) -> Bool {
    let signs = [
      alive, readerSign, ObjectLeases.dead, ObjectLeases.remover, ObjectLeases.holderName,
    ]
    return signs.contains(name) || CopyTurn.isSign(name)
      || [seenPrefix, PruneLease.ownerPrefix, LeaseStatus.Owner.prefix]
        .contains { name.bytes.starts(with: $0.utf8) }
  }

  /// Saves an object through the lease.
  func save(_ bytes: [UInt8], as object: ObjectPath) throws(StoreError) {
    try save(bytes, as: object) { () throws(StoreError) in throw Self.lost(storage.location) }
  }

  /// Saves an object through the lease. `renew` is called if the lease is dead (`LeaseForm`).
  func save(
    _ bytes: [UInt8], as object: ObjectPath, renew: () throws(StoreError) -> Void
  ) throws(StoreError) {
    try sending { () throws(StoreError) in
      try form.save(bytes, as: object, by: self, renew: renew)
    }
  }

  /// Makes requests that store an index object, a snapshot or another object that other programs
  /// rely on, and records that they were answered.
  func sending(_ body: () throws(StoreError) -> Void) throws(StoreError) {
    state.withLock { $0.unanswered += 1 }
    try body()
    state.withLock { $0.unanswered -= 1 }
  }

  /// Saves a snapshot whose content is durable. `renew` is called if the lease is dead
  /// (`LeaseForm`).
  func commit(
    _ snapshot: EncodedObject, renew: () throws(StoreError) -> Void
  ) throws(StoreError) {
    try sending { () throws(StoreError) in
      try form.commit(snapshot, by: self, renew: renew)
    }
  }

  /// Removes an index object through the lease.
  func remove(index id: Digest) throws(StoreError) { try remove(storage.layout.index(id)) }

  /// Removes an object through the lease. An object that is already gone is ignored.
  func remove(_ object: ObjectPath) throws(StoreError) { try form.remove(object, by: self) }

  /// Removes condemned packs through the lease, at most `removalBatch`. Those that are already gone
  /// are ignored.
  func remove(packs: [ObjectPath]) throws(StoreError) { try form.remove(packs: packs, by: self) }

  /// The number of packs that are removed at a time, between two looks at the right.
  var removalBatch: Int { form.removalBatch }

  /// Moves an object that no program changes.
  func move(_ object: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try form.move(object, to: target, by: self)
  }

  /// Takes an object away, so that it can be put back. Returns nil if it is already gone.
  func claim(_ object: ObjectPath, as name: ByteString) throws(StoreError) -> ClaimedObject? {
    try form.claim(object, as: name, by: self)
  }

  /// Makes a call that needs the lease. If the lease is gone, the error reports it.
  func explained<Result: ~Copyable>(
    _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    do {
      return try body()
    } catch {
      guard error.code == .missing, try isRemoved() else { throw error }
      throw Self.lost(storage.location, cause: error.cause)
    }
  }

  /// Returns the error for a lease that another program took away.
  static func lost(_ location: String, cause: SystemError? = nil) -> StoreError {
    StoreError(
      .leaseLost, "finish the work in", subject: location,
      reason: "its lease expired: no heartbeat was written for an hour",
      hint: "run the command again: data stored so far is reused", cause: cause)
  }

  /// Whether no other program can have taken the lease away as one without a heartbeat, as far as
  /// this host can know without asking the store.
  var isCertain: Bool {
    let now = clock()
    return state.withLock { state in
      !(state.hasLapsed || state.isLost || state.isDead)
        && now - state.lastBeat < Self.certainTime
    }
  }

  /// Half of `patience`: the clocks of hosts differ, and heartbeats take time to arrive.
  static let certainTime = patience / 2

  /// Whether another program took the lease away. Asks the store.
  func isTaken() throws(StoreError) -> Bool { try storage.canRename ? isRemoved() : isDead() }

  /// Whether another program removed the lease. The result is shared by all threads.
  private func isRemoved() throws(StoreError) -> Bool {
    let (isHeld, isLost) = state.withLock { ($0.isHeld, $0.isLost) }
    if isLost { return true }
    guard isHeld, try storage.status(path) == nil else { return false }
    state.withLock { ($0.isHeld, $0.isLost) = (false, true) }
    return true
  }

  /// Removes the lease with all unfinished objects. Anything that cannot be removed is left to
  /// prune.
  func release() {
    let (last, leftovers) = state.withLock { state in
      defer { (state.isHeld, state.leftovers) = (false, []) }
      return (state, state.leftovers)
    }
    if last.isHeld, last.reasonsToStay == 0 {
      // A dead lease contains objects of other programs as well, and is listed.
      let signs = last.isDead ? nil : last.signs.sorted()
      let isSettled = last.unanswered == 0
      form.release(path, signs: signs, isSettled: isSettled, with: leftovers)
    } else if !leftovers.isEmpty {
      try? storage.remove(leftovers)
    }
  }

  /// Removes an object that only protected what is now protected otherwise, together with the
  /// lease, so that it needs no request of its own. Only a few objects wait for that.
  func leave(_ object: ObjectPath) {
    let due = state.withLock { state in
      state.leftovers.append(object)
      guard state.leftovers.count >= Self.leftoverLimit else { return [ObjectPath]() }
      defer { state.leftovers = [] }
      return state.leftovers
    }
    if !due.isEmpty { try? storage.remove(due) }
  }

  private static let leftoverLimit = 16

  /// Lets the directory stay after the release, so that no prune removes packs until it expires,
  /// unless `cancelRetention` is called as often: several threads can have a reason.
  func retain() { state.withLock { $0.reasonsToStay += 1 } }

  /// Declares that one reason for the directory to stay no longer applies.
  func cancelRetention() { state.withLock { $0.reasonsToStay -= 1 } }
}

// MARK: - Leases of other programs

extension Lease {
  /// Takes away leases of other programs without a heartbeat for an hour of the storage's clock:
  /// these can then commit nothing more.
  func removeExpiredOthers() throws(StoreError) { try form.removeExpired(besides: self) }

  /// The current time by the storage's clock: that of a heartbeat that is written now. Returns nil
  /// if the lease was removed meanwhile.
  func now() throws(StoreError) -> Timestamp? {
    try touchAlive()
    return try storage.status(path.appending(Self.alive))?.modified
  }
}
