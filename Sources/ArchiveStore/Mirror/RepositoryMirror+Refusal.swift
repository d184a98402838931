internal import Codecs
internal import SystemIO

extension RepositoryMirror {
  /// Returns the errors of pinned snapshots that the original has lost and the mirror never had.
  func losses(
    in found: MirrorListing, besides old: MirrorListing
  ) throws(StoreError) -> [StoreError] {
    let lost = found.pins.subtracting(found.snapshots).subtracting(old.snapshots)
    if lost.isEmpty { return [] }
    let paths = Set(old.snapshots.map { "\(source.storage.layout.snapshot($0))" })
    return try source.lossesOfPinned().filter { !paths.contains($0.subject) }
  }

  /// The new snapshots whose content this run cannot read, although their bytes match their ids.
  struct Unread {
    /// Those that cannot be used: one that was damaged before it was stored, does not open, or
    /// belongs to another repository. They are not copied.
    var unusable: [(id: SnapshotID, error: StoreError)] = []
    /// Those for which the key lacks an older identity. They are copied.
    var older: [SnapshotID] = []
  }

  /// Returns the new snapshots that cannot be read. A snapshot of a later version does not count.
  ///
  /// - Parameter isWhole: whether the original has lost no pack, and the mirror has all. Otherwise
  ///   it is unknown if the mirror has what an older snapshot needs, which counts as unusable.
  func unread(among new: Set<SnapshotID>, isWhole: Bool) throws(StoreError) -> Unread {
    var unread = Unread()
    if new.isEmpty { return unread }
    let storage = source.storage
    var errors: [String: StoreError] = [:]
    for error in try source.heads(cache: headCache).damaged where error.kind == .damaged {
      errors[error.subject] = error
    }
    for id in new.sorted() where !errors.isEmpty {
      let path = storage.layout.snapshot(id)
      guard let error = errors["\(path)"], try ObjectCopier.isIntact(id, at: path, in: storage)
      else { continue }
      if error.needsOlderKey, isWhole {
        unread.older.append(id)
      } else {
        let hint = DamageRemedy.remedy(for: path, error)
        unread.unusable.append((id, hint.map(error.hinting) ?? error))
      }
    }
    return unread
  }

  /// Returns the refusal to remove the snapshots that an original no longer has; nil if they are
  /// few and do not include the complete form of a repaired snapshot. A snapshot that `key rewrap`
  /// wrote again there, with another header and therefore another id, is not removed.
  ///
  /// - Parameters:
  ///   - repository: the mirror.
  ///   - copied: returns the snapshots that the mirror has when the others are removed.
  func refusal(
    of found: MirrorListing, _ old: MirrorListing, in repository: Repository,
    with copied: () throws(StoreError) -> Set<SnapshotID>
  ) throws(StoreError) -> Refusal? {
    var gone = found.snapshotsRemoved(from: old)
    guard !gone.isEmpty else { return nil }
    let heads = try source.heads(cache: headCache).heads
    // If one cannot be read, the removal may be a large one.
    let readable = found.snapshots.intersection(heads.map(\.id))
    let all = old.snapshots.union(readable).count
    let repaired = repaired(among: gone, in: heads)
    let first = removal(
      of: gone, among: all, leaving: heads, repaired: repaired.count, in: repository)
    if found.snapshots.isEmpty {
      return first ?? Refusal(snapshots: gone.count, all: all, sources: 0)
    }
    guard let first, !allowsLargeRemoval else { return nil }
    let kept = readable.intersection(try copied()).sorted()
    let rewritten = try rewritten(among: gone, as: kept, in: repository)
    if rewritten.isEmpty { return first }
    gone.subtract(rewritten)
    return removal(
      of: gone, among: all - rewritten.count, leaving: heads,
      repaired: repaired.subtracting(rewritten).count, in: repository)
  }

  /// Returns the removed snapshots that the original has in a repaired form: it lacks what the
  /// original has lost.
  private func repaired(
    among gone: Set<SnapshotID>, in heads: [SnapshotHead]
  ) -> Set<SnapshotID> {
    gone.intersection(
      heads.compactMap(\.original).filter { $0.repository == source.id }.map(\.id))
  }

  /// Returns the removal of snapshots if it is a large one: of more than half of all, or of the
  /// last one of a source; or if some were repaired.
  private func removal(
    of gone: Set<SnapshotID>, among all: Int, leaving heads: [SnapshotHead], repaired: Int,
    in repository: Repository
  ) -> Refusal? {
    let remaining = Set(heads.map(\.source))
    var sources: Set<Digest> = []
    for id in gone {
      guard let stored = repository.snapshot(ifReadable: id, skip: { _ in }) else { continue }
      if !remaining.contains(stored.snapshot.source) { sources.insert(stored.snapshot.source) }
    }
    guard gone.count * 2 > all || !sources.isEmpty || repaired > 0 else { return nil }
    return Refusal(
      snapshots: gone.count, all: all, sources: sources.count, repaired: repaired)
  }

  /// Returns the snapshots of the mirror whose payload a snapshot of the original has. The keys
  /// that open them may no longer exist. Those of the original were opened: a file with such a
  /// payload and a header that does not open it does not count.
  private func rewritten(
    among gone: Set<SnapshotID>, as kept: [SnapshotID], in repository: Repository
  ) throws(StoreError) -> Set<SnapshotID> {
    guard source.isEncrypted, !kept.isEmpty else { return [] }
    let payloads = Set(try self.payloads(of: kept, in: source.storage).values)
    return Set(
      try self.payloads(of: gone.sorted(), in: repository.storage)
        .filter { payloads.contains($0.value) }.keys)
  }

  /// Returns the hashes of the payloads of stored snapshots, with their nonces. Damaged ones are
  /// skipped.
  private func payloads(
    of ids: [SnapshotID], in storage: RepositoryStorage
  ) throws(StoreError) -> [SnapshotID: Digest] {
    let limit = storage.storedLimit(of: FormatLimit.snapshot)
    let read = { @Sendable (id: SnapshotID) throws(StoreError) -> Digest? in
      let bytes = try storage.loadStored(id, at: storage.layout.snapshot(id), limit: limit)
      guard let count = AgeHeader.count(in: bytes.span) else { return nil }
      return Blake2b.hash(Array(bytes.dropFirst(count)))
    }
    var payloads: [SnapshotID: Digest] = [:]
    for part in ids.parts(of: storage.itemsAtOnce) {
      if isStopping() {
        throw .interrupted("finish reading", "the snapshots", hint: "run it again")
      }
      for (id, result) in zip(part, storage.results(of: part, read)) {
        if case .success(let payload?) = result { payloads[id] = payload }
      }
    }
    return payloads
  }
}
