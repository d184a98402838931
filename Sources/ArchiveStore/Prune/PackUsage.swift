internal import Codecs

/// The used part of each frame, from which the stored bytes of packs follow.
struct PackUsage {
  private var total: FrameTotals
  /// The decoded bytes of the used blobs in each frame.
  private var used: [UInt32]
  private var blobs: [Int]
  private var usedBlobs: [Int]
  private var hasData: [Bool]

  /// Returns the packs of an index in the given states, by default those that exist and are not
  /// condemned, in the order of the index.
  static func packs(
    of search: UsedBlobSearch, in states: Set<PruneIndex.PackState> = [.reliable, .damaged]
  ) -> [PrunePlan.Pack] {
    var packs: [PrunePlan.Pack] = []
    for (number, object) in search.index.objects.enumerated() {
      let usage = PackUsage(of: object, number: number, search.used)
      for pack in 0..<object.packs {
        if states.contains(search.index.states[number][pack]) {
          packs.append(usage.pack(pack, of: object))
        }
      }
    }
    return packs
  }

  private init(of object: IndexObject, number: Int, _ marks: UsedBlobs) {
    total = FrameTotals(preparing: object)
    used = total.bytes
    blobs = [Int](repeating: 0, count: object.packs)
    usedBlobs = blobs
    hasData = [Bool](repeating: false, count: object.packs)
    for entry in 0..<object.blobs {
      guard let record = object.record(entry) else { continue }
      let pack = Int(record.pack)
      total.add(record)
      blobs[pack] += 1
      if record.kind == .data { hasData[pack] = true }
      guard marks.contains(entry, of: number) else { continue }
      used[total.frame(of: record)] &+= record.length
      usedBlobs[pack] += 1
    }
  }

  private func pack(_ number: Int, of object: IndexObject) -> PrunePlan.Pack {
    let pack = object.pack(number)
    var (usedBytes, unusedBytes, unusedByShare) = (UInt64(0), UInt64(0), UnusedShare.Bytes())
    for frame in pack.firstFrame..<(pack.firstFrame + pack.frames) where total.bytes[frame] > 0 {
      // Hostile blobs that overlap may have more bytes than their frame, and more than UInt32.
      let (stored, all) = (UInt64(object.frame(frame).stored), UInt64(total.bytes[frame]))
      let ofUsed = min(stored, total.stored(used[frame], ofFrame: frame))
      usedBytes += ofUsed
      unusedBytes += stored - ofUsed
      let share = UnusedShare(of: all - min(all, UInt64(used[frame])), in: all)
      unusedByShare.add(stored - ofUsed, share)
    }
    return PrunePlan.Pack(
      id: pack.id, size: pack.size, used: usedBytes, unused: unusedBytes,
      usedBlobs: usedBlobs[number], unusedBlobs: blobs[number] - usedBlobs[number],
      hasData: hasData[number], unusedByShare: unusedByShare)
  }
}

/// The decoded bytes of the blobs in each frame of an index object, by which the stored bytes of a
/// frame are divided among its blobs.
struct FrameTotals: Sendable {
  private let object: IndexObject
  /// The number of each pack's first frame.
  private let firstFrames: [Int]
  /// The decoded bytes of the blobs in each frame.
  private(set) var bytes: [UInt32]

  /// Prepares the totals of an object, without blobs.
  init(preparing object: IndexObject) {
    self.object = object
    firstFrames = (0..<object.packs).map { object.pack($0).firstFrame }
    bytes = [UInt32](repeating: 0, count: object.layout.frames)
  }

  /// Counts all blobs of an object.
  init(of object: IndexObject) {
    self.init(preparing: object)
    for entry in 0..<object.blobs {
      if let record = object.record(entry) { add(record) }
    }
  }

  /// Counts a blob.
  mutating func add(_ record: BlobRecord) { bytes[frame(of: record)] &+= record.length }

  /// Returns the number of the frame that holds a blob.
  func frame(of record: BlobRecord) -> Int { firstFrames[Int(record.pack)] + Int(record.frame) }

  /// Returns the stored bytes of decoded bytes in a frame: their share, rounded down.
  func stored(_ part: UInt32, ofFrame frame: Int) -> UInt64 {
    bytes[frame] == 0 ? 0 : UInt64(object.frame(frame).stored) * UInt64(part) / UInt64(bytes[frame])
  }

  /// Returns the stored bytes of a blob.
  func stored(_ record: BlobRecord) -> UInt64 {
    stored(record.length, ofFrame: frame(of: record))
  }
}
