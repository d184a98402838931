internal import Codecs
internal import Synchronization
internal import SystemIO

/// The index objects that a check found whole, and what it found wrong with the packs that they
/// name.
///
/// A blob may lie in several packs: it is lost only when no whole one holds it.
struct CheckedIndex: Sendable {
  let objects: [IndexObject]
  /// Where each pack stands in the objects' tables.
  private let packs: [Digest: [(object: Int, pack: Int)]]
  /// What packs say of themselves that none of the objects names.
  var rescued: [IndexObject] = []
  private let rescueNeeds = RescueNeeds()
  /// Packs from which nothing can be had.
  var lostPacks: Set<Digest> = []
  /// Blobs that cannot be had from one pack.
  var lostPlaces: Set<Location> = []

  struct Location: Hashable, Sendable {
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
  }

  /// The packs that are named.
  var packIDs: some Collection<Digest> { packs.keys }

  func names(_ pack: Digest) -> Bool { packs[pack] != nil }

  /// The sizes and frames that the objects give a pack: one, unless they contradict each other.
  func tables(of pack: Digest) -> Set<PackTable> {
    Set(
      (packs[pack] ?? []).map { place in
        let object = objects[place.object]
        let pack = object.pack(place.pack)
        let frames = (0..<pack.frames).map { object.frame(pack.firstFrame + $0) }
        return PackTable(size: pack.size, frames: frames)
      })
  }

  struct PackTable: Hashable {
    let size: UInt64
    let frames: [FrameLocation]
  }

  /// What the objects say of the blobs in a pack: all of their tables are looked through.
  func records(of pack: Digest) -> [BlobRecord] {
    var records: [BlobRecord] = []
    for place in packs[pack] ?? [] {
      let object = objects[place.object]
      for number in 0..<object.blobs {
        if let record = object.record(number), Int(record.pack) == place.pack {
          records.append(record.inOnePack)
        }
      }
    }
    return records
  }

  /// How many entries of all objects are of each pack.
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

  /// How many of the objects' entries a pack's own table confirms.
  func confirmed(by records: [BlobRecord], of pack: Digest) -> Int {
    var count = 0
    for place in packs[pack] ?? [] {
      let object = objects[place.object]
      for record in records {
        let found = object.findAll(record.id).first { Int($0.pack) == place.pack }
        if found?.inOnePack == record { count += 1 }
      }
    }
    return count
  }

  /// Says why a blob of a length cannot be had; nothing when it can. Without a length any will do.
  func fault(of blob: BlobID, length: UInt64?) -> String? {
    var reason: String?
    for (number, object) in (objects + rescued).enumerated() {
      for record in object.findAll(blob) {
        let pack = object.pack(Int(record.pack)).id
        if let length, UInt64(record.length) != length {
          reason = "\(blob) has \(record.length) bytes in the index, and \(length) in the tree"
        } else if isLost(blob, in: pack) {
          reason = "\(blob) is lost with pack \(pack.hex)"
        } else {
          if number >= objects.count { rescueNeeds.isAny.store(true, ordering: .relaxed) }
          return nil
        }
      }
    }
    return reason ?? "\(blob) is in no index"
  }

  /// Whether something was to be had by what packs say of themselves alone.
  var isRescueNeeded: Bool { rescueNeeds.isAny.load(ordering: .relaxed) }

  private final class RescueNeeds: Sendable {
    let isAny = Atomic<Bool>(false)
  }

  private func isLost(_ blob: BlobID, in pack: Digest) -> Bool {
    lostPacks.contains(pack) || lostPlaces.contains(Location(blob: blob, pack: pack))
  }
}

extension BlobRecord {
  /// The entry as it stands in a pack's own table.
  var inOnePack: BlobRecord {
    var record = self
    record.pack = 0
    return record
  }
}

extension Repository {
  /// Begins reading by what a check found whole.
  func beginReading(by index: CheckedIndex) throws(StoreError) -> RepositoryReader {
    let lost = index.lostPacks
    let set = IndexSet(index.objects + index.rescued) { !lost.contains($0) }
    return try RepositoryReader(self, ReaderIndex(storage, fixed: set))
  }
}
