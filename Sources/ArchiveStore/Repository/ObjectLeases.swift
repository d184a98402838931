internal import Codecs
internal import SystemIO

/// Leases in a store without rename: prefixes with objects (docs/repository-format.md, "Stores
/// without rename").
///
/// A lease is alive while it has the object that names its program and none that marks it as dead.
/// The former is put only once, so a heartbeat after the removal of a dead lease does not revive
/// it.
struct ObjectLeases: LeaseForm {
  let storage: RepositoryStorage

  init(_ storage: RepositoryStorage) { self.storage = storage }

  /// The object that marks a lease as dead, and the one that shows that its program may remove
  /// objects.
  static let dead: ByteString = "dead"
  static let remover: ByteString = "prune"

  /// The seconds after which the objects of a dead lease are removed: a program suspended for
  /// longer may have decided before then to remove packs.
  static let burial = 86_400.0

  /// The maximum number that one request removes.
  var removalBatch: Int { 1000 }

  func mayTakeReaderLease() -> Bool { true }

  func make(_ lease: ObjectPath) {}

  /// Only the one that names the program: its time is the heartbeat until the first one, a minute
  /// later, so a short run needs no other request for that.
  var firstSigns: [ByteString] { [LeaseStatus.Owner.sign] }

  func isDead(_ lease: ObjectPath) throws(StoreError) -> Bool {
    let names = try storage.list(lease)
    return names.contains(Self.dead) || !names.contains { LeaseStatus.Owner($0) != nil }
  }

  /// Checks that a lease is alive.
  ///
  /// - Throws: `leaseLost` if not.
  func requireAlive(_ lease: Lease) throws(StoreError) {
    if try lease.isDead() { throw Lease.lost(storage.location) }
  }

  func save(
    _ bytes: [UInt8], as object: ObjectPath, by lease: Lease, renew: () throws(StoreError) -> Void
  ) throws(StoreError) {
    if try lease.isDead() { try renew() }
    try storage.save(bytes, as: object, by: lease.path)
    if object.directory == RepositoryLayout.indexes { try lease.requireAlive(afterPutting: object) }
  }

  func claim(
    _ object: ObjectPath, as name: ByteString, by lease: Lease
  ) throws(StoreError) -> ClaimedObject? {
    let bytes: [UInt8]
    do {
      bytes = try storage.load(object, limit: storage.storedLimit(of: FormatLimit.snapshot))
    } catch {
      guard error.code == .missing else { throw error }
      return nil
    }
    try requireAlive(lease)
    try storage.remove(object)
    return ClaimedObject(
      discard: {},
      putBack: { () throws(StoreError) in
        try commit(EncodedObject(bytes), as: object, by: lease) { () throws(StoreError) in
          throw Lease.lost(storage.location)
        }
      })
  }

  func remove(_ object: ObjectPath, by lease: Lease) throws(StoreError) {
    try remove([object], by: lease)
  }

  func remove(packs: [ObjectPath], by lease: Lease) throws(StoreError) {
    try remove(packs, by: lease)
  }

  private func remove(_ objects: [ObjectPath], by lease: Lease) throws(StoreError) {
    guard !objects.isEmpty else { return }
    try requireAlive(lease)
    try storage.remove(objects)
  }

  /// Copies the object, and then removes it.
  func move(_ object: ObjectPath, to target: ObjectPath, by lease: Lease) throws(StoreError) {
    guard let size = try storage.status(object)?.size else { throw .missing("\(object)") }
    let writer = try storage.startObject(in: lease.path)
    do throws(StoreError) {
      var hash = Blake2b()
      var (offset, piece) = (UInt64(0), [UInt8]())
      while offset < size {
        try lease.keepAlive()
        let count = Int(min(size - offset, 4 << 20))
        try storage.load(object, offset: offset, count: count, into: &piece)
        hash.update(piece)
        try writer.append(piece)
        offset += UInt64(count)
      }
      try writer.commit(as: target, digest: hash.finish(), isReadSoon: false)
    } catch {
      writer.discard()
      throw error
    }
    try remove([object], by: lease)
  }

  /// Removes the lease in one request, or in two if the leftovers may not be removed. Its content
  /// is known unless it is dead: a live lease has only signs of its own program. If it was marked
  /// as dead since it was last checked, the mark stays, and is removed with the next dead leases.
  ///
  /// A program that may not remove objects marks its own lease as dead, so that no prune waits for
  /// it. It has committed its snapshot before that or makes none, as if it had removed the lease.
  /// But if an index object or a snapshot may still be on its way to the store, the lease stays
  /// alive for an hour.
  func release(
    _ lease: ObjectPath, signs: [ByteString]?, isSettled: Bool, with leftovers: [ObjectPath]
  ) {
    let objects = (signs ?? (try? storage.list(lease)) ?? []).map { lease.appending($0) }
    do { try storage.remove(leftovers + objects) } catch {
      guard error.isRefused, signs != nil else { return }
      end(lease, with: objects, isSettled: isSettled)
    }
  }

  /// Removes the lease without leftovers, because credentials may have only the right to remove
  /// leases, or marks it. A lease without a sign of its program gets no mark, which would stay for
  /// a day.
  private func end(_ lease: ObjectPath, with objects: [ObjectPath], isSettled: Bool) {
    do { try storage.remove(objects) } catch {
      guard error.isRefused, isSettled, let isDead = try? isDead(lease), !isDead else { return }
      try? storage.touch(lease.appending(Self.dead))
    }
  }
}

// MARK: - Leases of other programs

extension ObjectLeases {
  /// A lease with the times of its objects.
  private struct Entry {
    var objects: [ByteString: Timestamp] = [:]

    /// The time of the mark, or nil if it is alive.
    var dead: Timestamp? { objects[ObjectLeases.dead] }

    /// The last heartbeat; without one, the program ended early.
    var heartbeat: Timestamp? { objects[Lease.alive] ?? objects.values.max() }
  }

  /// Returns all leases, and that of the right to remove objects, in one listing.
  private func entries() throws(StoreError) -> [ByteString: Entry] {
    var entries: [ByteString: Entry] = [:]
    try storage.forEachObject(below: RepositoryLayout.leases) { path, status in
      guard path.components.count == 3 else { return }
      entries[path.components[1], default: Entry()].objects[path.name] = status.modified
    }
    return entries
  }

  /// Returns the leases that are alive.
  func statuses() throws(StoreError) -> [LeaseStatus] { Self.statuses(of: try entries()) }

  private static func statuses(
    of entries: [ByteString: Entry], withDead: Bool = false
  ) -> [LeaseStatus] {
    let holders = entries[PruneLease.path.name]?.objects ?? [:]
    let leases = entries.filter {
      $0.key != PruneLease.path.name && (withDead || $0.value.dead == nil)
    }
    return leases.sorted { $0.key < $1.key }.map { name, entry in
      let signs = entry.objects.keys.sorted()
      return LeaseStatus(
        name: name, signs: signs, heartbeat: entry.heartbeat,
        began: signs.first { LeaseStatus.Owner($0) != nil }.flatMap { entry.objects[$0] },
        removesObjects: holders[PruneLease.owner(of: name)] != nil)
    }
  }

  func sleepingRemovers() throws(StoreError) -> [ByteString] {
    try entries().filter { $0.value.dead != nil && $0.value.objects[Self.remover] != nil }
      .keys.sorted()
  }

  /// Marks leases without a heartbeat as dead, removes the remains of those that have been dead for
  /// a day, and then pending snapshots that no living program can have put.
  func removeExpired(besides lease: Lease) throws(StoreError) {
    guard let now = try lease.now() else { return }
    for (name, entry) in try entries()
    where ![lease.path.name, PruneLease.path.name].contains(name) {
      let path = RepositoryLayout.leases.appending(name)
      if let dead = entry.dead {
        if now.since(dead) > Self.burial { try remove(entry, path) }
      } else if let last = entry.heartbeat {
        if now.since(last) > Lease.patience { try storage.touch(path.appending(Self.dead)) }
        // The clock was set back: the hour starts now.
        if last.since(now) > Lease.patience { try? storage.touch(path.appending(Lease.alive)) }
      }
    }
    try removePending(besides: lease)
  }

  /// Removes a dead lease; the mark last, so that its program never finds the lease alive.
  private func remove(_ entry: Entry, _ lease: ObjectPath) throws(StoreError) {
    let others = entry.objects.keys.filter { $0 != Self.dead }
    try storage.remove(others.map { lease.appending($0) })
    try storage.remove(lease.appending(Self.dead))
  }

  /// Removes the pending snapshots that are older than all programs that can write, including those
  /// that have been dead for less than a day: a suspended one may be about to put such a snapshot.
  /// If the time of one of them is unknown, none is removed.
  private func removePending(besides lease: Lease) throws(StoreError) {
    var pending: [(path: ObjectPath, modified: Timestamp)] = []
    try storage.forEachObject(below: RepositoryLayout.pending) { path, status in
      pending.append((path, status.modified))
    }
    guard !pending.isEmpty else { return }
    // A lease of which only the mark remains belongs to no program.
    let leases = try entries().filter { Array($0.value.objects.keys) != [Self.dead] }
    let writers = Self.statuses(of: leases, withDead: true).filter {
      !$0.isReader && $0.name != lease.path.name
    }
    let starts = writers.compactMap(\.began)
    guard starts.count == writers.count else { return }
    let first = starts.min()
    let left = pending.filter { entry in first.map { entry.modified < $0 } ?? true }
    try remove(left.map(\.path), by: lease)
  }
}

// MARK: - The right to remove objects

extension ObjectLeases {
  /// The object that one program creates, if the store can create objects exclusively. Its content
  /// is the name of the program's lease.
  private static let holder = PruneLease.path.appending(holderName)
  static let holderName: ByteString = "holder"
  /// The number of attempts to become the only candidate, and the seconds between them.
  private static let attempts = 4
  private static let pause = 0.25

  private func owner(_ lease: Lease) -> ObjectPath {
    PruneLease.path.appending(PruneLease.owner(of: lease.path.name))
  }

  /// Creates `leases/prune/holder` if the store can, puts `leases/prune/of-<lease>`, and looks for
  /// those of other programs. Of two, at least one sees the other, so at most one has the right.
  /// The one with the lowest name waits for the others, which give up.
  func takeRight(_ lease: Lease) throws(StoreError) -> Bool {
    try requireAlive(lease)
    try requireRemoval(lease)
    try storage.touch(lease.path.appending(Self.remover))
    do throws(StoreError) {
      if try becomeHolder(lease), try isOnlyCandidate(lease) { return true }
    } catch {
      releaseRight(lease)
      throw error
    }
    releaseRight(lease)
    return false
  }

  /// Checks that these credentials can remove objects: a program that cannot would keep the right
  /// from all others until its lease expires.
  private func requireRemoval(_ lease: Lease) throws(StoreError) {
    let probe = lease.path.appending(RepositoryLayout.newProbe())
    try storage.touch(probe)
    do {
      try storage.remove(probe)
    } catch {
      guard error.cause?.isRefused == true else { throw error }
      throw StoreError(
        error.code, "remove objects of", subject: storage.location, reason: error.reason,
        hint: "use credentials that may remove objects", cause: error.cause)
    }
  }

  private func becomeHolder(_ lease: Lease) throws(StoreError) -> Bool {
    guard storage.canCreateExclusively else { return true }
    let name = lease.path.name
    for _ in 0..<Self.attempts {
      if try storage.create(Array(name.bytes), as: Self.holder) { return true }
      guard let other = try currentHolder() else { continue }
      // The answer to an earlier request was lost.
      if other == name { return true }
      guard try isGone(other, for: lease) else { return false }
      try storage.remove(Self.holder)
    }
    return false
  }

  /// Returns the lease of the program that holds the object, or nil if there is none.
  private func currentHolder() throws(StoreError) -> ByteString? {
    do {
      return ByteString(try storage.load(Self.holder, limit: 256))
    } catch {
      if error.code == .missing { return nil }
      guard error.code == .damaged else { throw error }
      return ByteString("damaged")
    }
  }

  private func isOnlyCandidate(_ lease: Lease) throws(StoreError) -> Bool {
    let own = owner(lease)
    try storage.touch(own)
    for attempt in 0..<Self.attempts {
      var others: [ByteString] = []
      for name in try storage.list(PruneLease.path) where name != own.name {
        guard let text = name.utf8, text.hasPrefix(PruneLease.ownerPrefix) else { continue }
        let other = ByteString(String(text.dropFirst(PruneLease.ownerPrefix.count)))
        if try isGone(other, for: lease) {
          try storage.remove(PruneLease.path.appending(name))
        } else {
          others.append(name)
        }
      }
      if others.isEmpty { return true }
      guard others.allSatisfy({ own.name < $0 }) else { return false }
      if attempt + 1 < Self.attempts { Host.pause(seconds: Self.pause) }
    }
    return false
  }

  /// Whether a program has ended without giving up the right: its lease is gone, or dead, or has
  /// had no heartbeat for an hour, or for some minutes if its process is known to have ended. The
  /// last two are marked as dead.
  private func isGone(_ name: ByteString, for lease: Lease) throws(StoreError) -> Bool {
    guard let status = try statuses().first(where: { $0.name == name }) else { return true }
    guard let now = try lease.now(), status.isExpired(at: now) || status.hasEnded(before: now)
    else { return false }
    try storage.touch(RepositoryLayout.leases.appending(name).appending(Self.dead))
    return true
  }

  func holdsRight(_ lease: Lease) throws(StoreError) -> Bool {
    guard try storage.list(PruneLease.path).contains(owner(lease).name) else { return false }
    return try !isDead(lease.path)
  }

  func releaseRight(_ lease: Lease) {
    try? storage.remove(owner(lease))
    if storage.canCreateExclusively, let holder = try? currentHolder(), holder == lease.path.name {
      try? storage.remove(Self.holder)
    }
    try? storage.remove(lease.path.appending(Self.remover))
  }
}
