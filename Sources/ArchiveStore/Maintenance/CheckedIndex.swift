internal import Codecs
internal import Synchronization
internal import SystemIO

/// The index objects that a check found intact, and the faults of the packs that they name.
///
/// A blob may be in several packs. It is lost only if no intact pack holds it.
struct CheckedIndex: Sendable {
  let objects: [IndexObject]
  /// The positions of each pack in the tables of the objects.
  private let packs: [Digest: [(object: Int, pack: Int)]]
  /// The entries by pack, which only damaged packs need.
  private let entries: PackEntries
  /// The contents tables of packs that none of the objects names.
  var rescued: [IndexObject] = []
  private let rescueNeeds = RescueNeeds()
  /// Packs from which nothing can be read.
  var lostPacks: Set<Digest> = []
  /// Blobs that cannot be read from one pack.
  var lostCopies: Set<BlobCopy> = []
  /// The error of a pack that no object names and whose own table this user may not read: an
  /// unindexed blob may be in it. Nil if there is none.
  var refusal: StoreError?

  struct BlobCopy: Hashable, Sendable {
    let blob: BlobID
    let pack: Digest
  }

  init(_ objects: [IndexObject]) {
    self.objects = objects
    var packs: [Digest: [(object: Int, pack: Int)]] = [:]
    for (number, object) in objects.enumerated() {
      for pack in 0..<object.packs {
        packs[object.pack(pack).id, default: []].append((number, pack))
      }
    }
    self.packs = packs
    entries = PackEntries(of: objects)
  }

  /// The packs named by the objects.
  var packIDs: some Collection<Digest> { packs.keys }

  func names(_ pack: Digest) -> Bool { packs[pack] != nil }

  /// Returns the sizes and frames that the objects record for a pack: one of each, unless they
  /// contradict each other.
  func tables(of pack: Digest) -> Set<PackTable> {
    Set(
      (packs[pack] ?? []).map { position in
        let object = objects[position.object]
        let pack = object.pack(position.pack)
        let frames = (0..<pack.frames).map { object.frame(pack.firstFrame + $0) }
        return PackTable(size: pack.size, frames: frames)
      })
  }

  struct PackTable: Hashable {
    let size: UInt64
    let frames: [FrameLocation]
  }

  /// Returns the entries of a pack.
  func records(of pack: Digest) -> [BlobRecord] {
    (packs[pack] ?? []).flatMap { position in
      entries.records(ofPack: position.pack, in: position.object).map(\.inOnePack)
    }
  }

  /// Returns the number of entries of each pack in all objects.
  func counts() -> [Digest: Int] {
    var counts: [Digest: Int] = [:]
    for object in objects {
      var ofObject = [Int](repeating: 0, count: object.packs)
      for number in 0..<object.blobs {
        if let record = object.record(number) { ofObject[Int(record.pack)] += 1 }
      }
      for (number, count) in ofObject.enumerated() {
        counts[object.pack(number).id, default: 0] += count
      }
    }
    return counts
  }

  /// Returns the number of entries that a pack's own table confirms.
  func confirmed(by records: [BlobRecord], of pack: Digest) -> Int {
    var count = 0
    for position in packs[pack] ?? [] {
      let object = objects[position.object]
      for record in records {
        let found = object.first(record.id) { Int($0.pack) == position.pack }
        if found?.inOnePack == record { count += 1 }
      }
    }
    return count
  }

  /// Why a path cannot be restored, or why that is unknown.
  enum Fault: Hashable, Sendable {
    case lost(String)
    /// A blob is in no index, and may be in a pack that this user may not read.
    case unindexed(String)
    /// A tree or a list is in a pack that this user may not read: what it needs is unknown.
    case refused(String)

    /// The fault of a tree or a list that a reader which continues without refused packs could not
    /// read.
    init(_ error: StoreError) {
      let reason = "\(error.subject): \(error.reason)"
      guard error.isRefused else {
        self = .lost(reason)
        return
      }
      self = error.code == .missing ? .unindexed(reason) : .refused(reason)
    }

    var isLoss: Bool { if case .lost = self { true } else { false } }
  }

  /// Returns the reason a blob cannot be read, or nil if it can. Without a length, any length
  /// matches.
  func fault(of blob: BlobID, length: UInt64?) -> Fault? {
    var reason: String?
    if isSound(blob, length: length, in: objects, reason: &reason) { return nil }
    if isSound(blob, length: length, in: rescued, reason: &reason) {
      rescueNeeds.isAny.store(true, ordering: .relaxed)
      return nil
    }
    if let reason { return .lost(reason) }
    return refusal.map { Fault($0.asMissing("\(blob)")) } ?? .lost("\(blob) is in no index")
  }

  /// Whether one of the objects names a sound copy of a blob. `reason` gets the fault of the last
  /// unsound copy. The objects are not copied: a store of objects can have thousands.
  private func isSound(
    _ blob: BlobID, length: UInt64?, in objects: [IndexObject], reason: inout String?
  ) -> Bool {
    for number in objects.indices {
      for record in objects[number].findAll(blob) {
        let pack = objects[number].pack(Int(record.pack)).id
        if let length, UInt64(record.length) != length {
          reason = "\(blob) has \(record.length) bytes in the index but \(length) in the tree"
        } else if isLost(blob, in: pack) {
          reason = "\(blob) is lost with pack \(pack.hex)"
        } else {
          return true
        }
      }
    }
    return false
  }

  /// Begins to read a repository with this index.
  func reader(of repository: Repository) throws(StoreError) -> RepositoryReader {
    let lost = lostPacks
    let set = IndexSet(objects + rescued) { !lost.contains($0) }
    let index = ReaderIndex(repository.storage, fixed: set, lacking: refusal)
    return try RepositoryReader(repository, index)
  }

  /// Whether something was found only in the packs' own contents tables.
  var isRescueNeeded: Bool { rescueNeeds.isAny.load(ordering: .relaxed) }

  private final class RescueNeeds: Sendable {
    let isAny = Atomic<Bool>(false)
  }

  private func isLost(_ blob: BlobID, in pack: Digest) -> Bool {
    lostPacks.contains(pack) || lostCopies.contains(BlobCopy(blob: blob, pack: pack))
  }
}

extension BlobRecord {
  /// The entry in the form of a pack's own table.
  var inOnePack: BlobRecord {
    var record = self
    record.pack = 0
    return record
  }
}
