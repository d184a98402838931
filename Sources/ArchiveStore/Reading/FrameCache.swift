internal import Codecs

/// A least-recently-used cache of decoded frames.
struct FrameCache {
  struct Key: Hashable {
    let pack: Digest
    let frame: Int
  }

  private struct Held {
    let bytes: [UInt8]
    var lastUse: Int
  }

  private let capacity: Int
  private var frames: [Key: Held] = [:]
  private var size = 0
  private var uses = 0

  /// Creates a cache of at most `capacity` bytes, which always keeps the newest frame.
  init(capacity: Int) { self.capacity = capacity }

  mutating func frame(_ key: Key) -> [UInt8]? {
    guard let held = frames[key] else { return nil }
    uses += 1
    frames[key]?.lastUse = uses
    return held.bytes
  }

  mutating func insert(_ bytes: [UInt8], _ key: Key) {
    uses += 1
    if let before = frames.updateValue(Held(bytes: bytes, lastUse: uses), forKey: key) {
      size -= before.bytes.count
    }
    size += bytes.count
    while size > capacity, frames.count > 1,
      let oldest = frames.min(by: { $0.value.lastUse < $1.value.lastUse })
    {
      size -= oldest.value.bytes.count
      frames[oldest.key] = nil
    }
  }
}
