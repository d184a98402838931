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
