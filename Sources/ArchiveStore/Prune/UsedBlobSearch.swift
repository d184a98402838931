internal import Codecs
internal import Synchronization
internal import SystemIO

/// Finds the blobs that trees need. Each tree and list is read once, however many snapshots share
/// it, by several threads and in the order of the packs.
///
/// A data blob that no pack has is counted as lost and does not end the search. A tree or a list
/// that cannot be read does, because what it needs is unknown, unless the search continues past
/// damage.
struct UsedBlobSearch {
  private let repository: Repository
  /// The work that needs the result, as the words after "cannot" in an error.
  private let action: String
  private let threads: Int
  private let isStopping: @Sendable () -> Bool
  private let continuesPastDamage: Bool
  /// Counts the trees that are read; nil for none.
  var counters: ProgressCounters?
  private(set) var index: PruneIndex
  private(set) var used = UsedBlobs()
  /// The blobs that the latest snapshots need.
  private var latest = UsedBlobs()
  /// Data blobs that no existing pack has.
  private(set) var lost: Set<Digest> = []
  /// The trees and lists that cannot be read, if the search continues past damage.
  private(set) var unreadable: Set<BlobID> = []
  /// Whether one of them would not be read with an older key either.
  private(set) var hasDamage = false

  /// The number of trees and lists that are read together.
  private static let batch = 8192

  /// A tree or a list to read.
  private struct Pending: Sendable, BitwiseCopyable {
    let digest: Digest
    /// The level of a list; nil for a tree.
    let level: UInt8?
    /// The bytes of the file that a list covers.
    let length: UInt64

    var kind: BlobKind { level == nil ? .tree : .list }
  }

  /// Prepares a search with `threads` threads for the work that errors name as `action`.
  /// `isStopping` is called between frames.
  init(
    _ repository: Repository, _ index: PruneIndex, for action: String, threads: Int,
    continuesPastDamage: Bool = false, isStopping: @escaping @Sendable () -> Bool
  ) {
    (self.repository, self.index, self.threads) = (repository, index, threads)
    self.action = action
    (self.continuesPastDamage, self.isStopping) = (continuesPastDamage, isStopping)
    used.extend(to: index.objects)
  }

  /// Adds an index object.
  mutating func add(
    _ object: IndexObject, state: (IndexObject.Pack) throws(StoreError) -> PruneIndex.PackState
  ) throws(StoreError) {
    try index.add(object, state: state)
    used.extend(to: index.objects)
  }

  /// Changes the state of packs. Blobs that are marked in one of them stay marked there.
  mutating func set(_ state: PruneIndex.PackState, of packs: Set<Digest>) {
    index.set(state, of: packs)
  }

  /// Removes the marks of blobs for which `isSelected` returns false.
  mutating func filter(_ isSelected: (BlobRecord) -> Bool) {
    for (number, object) in index.objects.enumerated() {
      used.filter(object: number) { entry in object.record(entry).map(isSelected) ?? false }
    }
  }

  /// Marks what the trees need.
  ///
  /// - Throws: `StoreError`: `damaged` or `missing` for a tree or list that cannot be read,
  ///   `interrupted`, and failures of the storage.
  mutating func mark(_ trees: some Sequence<TreeReference>) throws {
    let reader = try RepositoryReader(
      repository, ReaderIndex(repository.storage, fixed: index.existing))
    let run = Run(index, used, continuesPastDamage: continuesPastDamage)
    try run.add(
      Needs(blobs: trees.map { Needs.Blob(id: BlobID(kind: .tree, digest: $0.digest)) }))
    defer {
      (used, lost, unreadable) = run.end(lost, unreadable)
      if run.hasDamage { hasDamage = true }
    }
    while let (kind, batch) = run.nextBatch(atMost: Self.batch) {
      let sink = Sink(run, batch, counters: counters)
      let uses = batch.enumerated().compactMap { number, pending in
        index.use(of: BlobID(kind: kind, digest: pending.digest), item: number)
      }
      try reader.deliver(uses, of: kind, threads: threads, isStopping: isStopping) { sink }
      if isStopping() {
        throw StoreError.interrupted(action, repository.location, hint: "run it again")
      }
      try sink.readMissing(reader)
    }
  }

  /// Records that the latest snapshots need the blobs that are marked now.
  mutating func recordLatest() { latest = used }

  /// Whether only older snapshots need a used blob.
  func isOlder(_ blob: BlobRecord) -> Bool {
    guard let entry = index.find(blob.id)?.entry else { return false }
    return !latest.contains(Int(entry.number), of: Int(entry.object))
  }

  /// The number of used blobs, their bytes, and their stored bytes in packs that exist and are not
  /// condemned.
  var usage: (blobs: Int, bytes: UInt64, stored: UInt64) {
    var bytes: UInt64 = 0
    for (number, object) in index.objects.enumerated() {
      for entry in 0..<object.blobs where used.contains(entry, of: number) {
        bytes += UInt64(object.record(entry)?.length ?? 0)
      }
    }
    return (used.count, bytes, PackUsage.packs(of: self).reduce(0) { $0 + $1.used })
  }

  /// Returns the packs among `condemned` that hold a needed blob that no reliable pack holds. The
  /// copies of the other needed blobs in these packs are marked: after the packs are removed, they
  /// are the ones that are needed.
  mutating func selectNeeded(among condemned: Set<Digest>) -> Set<Digest> {
    var needed: Set<Digest> = []
    for (number, object) in index.objects.enumerated() {
      let packs = (0..<object.packs).map { pack in
        index.states[number][pack] != .repeated && condemned.contains(object.pack(pack).id)
      }
      guard packs.contains(true) else { continue }
      for entry in 0..<object.blobs where used.contains(entry, of: number) {
        guard let record = object.record(entry), packs[Int(record.pack)] else { continue }
        if let copy = index.find(record.id), copy.state == .reliable {
          used.insert(copy.entry)
        } else {
          needed.insert(object.pack(Int(record.pack)).id)
        }
      }
    }
    return needed
  }

  /// Marks lost blobs that an index object added since then has.
  mutating func markFound() {
    for digest in lost {
      guard let found = index.find(BlobID(kind: .data, digest: digest)) else { continue }
      used.insert(found.entry)
      lost.remove(digest)
    }
  }
}

extension PruneIndex {
  /// Returns the use of a blob for a delivery, with the length in the index, or nil if no existing
  /// pack has it.
  fileprivate func use(of blob: BlobID, item: Int) -> BlobDelivery.Use? {
    guard let entry = find(blob)?.entry,
      let record = objects[Int(entry.object)].record(Int(entry.number))
    else { return nil }
    return BlobDelivery.Use(
      digest: blob.digest, length: record.length, item: UInt32(item), offset: 0)
  }
}

extension UsedBlobSearch {
  /// The blobs that a tree or a list refers to.
  private struct Needs {
    struct Blob {
      let id: BlobID
      var level: UInt8?
      var length: UInt64 = 0
    }

    var blobs: [Blob] = []

    mutating func add(_ entry: TreeEntry) {
      for attribute in entry.attributes {
        if case .blob(let digest, _) = attribute.value {
          blobs.append(Blob(id: BlobID(kind: .data, digest: digest)))
        }
      }
      switch entry.node {
      case .directory(let tree):
        blobs.append(Blob(id: BlobID(kind: .tree, digest: tree.digest)))
      case .file(let content): add(content.pieces, level: content.level)
      default: break
      }
    }

    /// Adds the pieces of a file or of a list. Those of a level above 0 are lists themselves.
    mutating func add(_ pieces: [Piece], level: UInt8) {
      for piece in pieces {
        guard case .blob(let digest, let length) = piece else { continue }
        blobs.append(
          level == 0
            ? Blob(id: BlobID(kind: .data, digest: digest))
            : Blob(id: BlobID(kind: .list, digest: digest), level: level - 1, length: length))
      }
    }

    mutating func add(_ tree: TreeBlob) {
      switch tree {
      case .page(let entries): for entry in entries { add(entry) }
      case .table(let pages):
        for page in pages { blobs.append(Blob(id: BlobID(kind: .tree, digest: page.digest))) }
      }
    }
  }

  /// The state of a search, shared by its threads.
  private final class Run: Sendable {
    private let index: PruneIndex
    private let continuesPastDamage: Bool
    private let state: Mutex<State>

    private struct State {
      var used: UsedBlobs
      var trees = SpillableArray<Pending>()
      var lists = SpillableArray<Pending>()
      var lost: Set<Digest> = []
      var unreadable: Set<BlobID> = []
      var hasDamage = false
    }

    init(_ index: PruneIndex, _ used: UsedBlobs, continuesPastDamage: Bool) {
      (self.index, self.continuesPastDamage) = (index, continuesPastDamage)
      state = Mutex(State(used: used))
    }

    /// Marks blobs. Trees and lists that were not marked before are read later. The index is
    /// searched without the lock.
    func add(_ needs: Needs) throws(StoreError) {
      var found: [(blob: Needs.Blob, entry: PruneIndex.Entry?)] = []
      found.reserveCapacity(needs.blobs.count)
      for blob in needs.blobs {
        let entry = index.find(blob.id)?.entry
        guard entry != nil || blob.id.kind == .data else {
          try skip(blob.id, .missing("\(blob.id)"))
          continue
        }
        found.append((blob, entry))
      }
      state.withLock { state in
        for (blob, entry) in found {
          guard let entry else {
            state.lost.insert(blob.id.digest)
            continue
          }
          guard state.used.insert(entry), blob.id.kind != .data else { continue }
          let pending = Pending(
            digest: blob.id.digest, level: blob.level, length: blob.length)
          if blob.level == nil { state.trees.append(pending) } else { state.lists.append(pending) }
        }
      }
    }

    /// Records a tree or list that cannot be read, or throws the reason if that ends the search.
    func skip(_ blob: BlobID, _ error: StoreError) throws(StoreError) {
      guard continuesPastDamage, error.kind == .damaged else { throw error }
      state.withLock { state in
        state.unreadable.insert(blob)
        if !error.needsOlderKey { state.hasDamage = true }
      }
    }

    /// Whether a tree or list was skipped that an older key would not open.
    var hasDamage: Bool { state.withLock { $0.hasDamage } }

    /// Removes the next trees, or lists if there are no trees, and returns them. The last ones come
    /// first, which bounds their number by the depth of the trees.
    func nextBatch(atMost count: Int) -> (BlobKind, [Pending])? {
      state.withLock { state in
        if let trees = Self.removeLast(count, from: &state.trees) { return (.tree, trees) }
        return Self.removeLast(count, from: &state.lists).map { (.list, $0) }
      }
    }

    private static func removeLast(
      _ count: Int, from all: inout SpillableArray<Pending>
    ) -> [Pending]? {
      guard !all.isEmpty else { return nil }
      let count = min(count, all.count)
      let removed = Array(all.copy((all.count - count)..<all.count))
      all.removeLast(count)
      return removed
    }

    /// Returns the result, with the blobs that were lost or unreadable before.
    func end(
      _ lost: Set<Digest>, _ unreadable: Set<BlobID>
    ) -> (UsedBlobs, Set<Digest>, Set<BlobID>) {
      state.withLock { ($0.used, $0.lost.union(lost), $0.unreadable.union(unreadable)) }
    }
  }

  /// Receives trees or lists and marks what they need.
  private final class Sink: BlobDelivery.Sink, Sendable {
    private let run: Run
    private let batch: [Pending]
    private let counters: ProgressCounters?
    private let missing = Mutex<[UInt32]>([])

    init(_ run: Run, _ batch: [Pending], counters: ProgressCounters?) {
      (self.run, self.batch, self.counters) = (run, batch, counters)
    }

    func receive(_ blobs: [BlobDelivery.Blob], of frame: [UInt8]) throws {
      for blob in blobs {
        guard let range = blob.range else {
          missing.withLock { $0.append(blob.use.item) }
          continue
        }
        let pending = batch[Int(blob.use.item)]
        do throws(StoreError) {
          try decode(frame, range, of: pending)
        } catch {
          try run.skip(BlobID(kind: pending.kind, digest: pending.digest), error)
        }
      }
    }

    private func decode(
      _ bytes: [UInt8], _ range: Range<Int>, of pending: Pending
    ) throws(StoreError) {
      var needs = Needs()
      let id = BlobID(kind: pending.kind, digest: pending.digest)
      if let level = pending.level {
        let pieces = try ContentCoding.decodeList(
          Array(bytes[range]), level: level, length: pending.length, object: "\(id)")
        needs.add(pieces, level: level)
      } else {
        needs.add(try TreeCoding.decode(bytes, range: range, object: "\(id)"))
        counters?.didHandle(files: 1)
      }
      try run.add(needs)
    }

    func reportMissing(_ uses: [BlobDelivery.Use], _ error: StoreError) {
      missing.withLock { $0 += uses.map(\.item) }
    }

    /// Reads the blobs whose first copy is damaged from any other copy.
    func readMissing(_ reader: RepositoryReader) throws(StoreError) {
      for item in missing.withLock({ $0 }) {
        let pending = batch[Int(item)]
        let blob = BlobID(kind: pending.kind, digest: pending.digest)
        do {
          let bytes = try reader.readBlob(blob)
          try decode(bytes, bytes.indices, of: pending)
        } catch {
          try run.skip(blob, error)
        }
      }
    }
  }
}
