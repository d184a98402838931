/// Tells content whose bytes are spread as evenly as noise (photos, video, what is compressed or
/// encrypted already) from text, databases and programs, by a look at a sample.
///
/// A guess that serves to keep like beside like: 512 bytes from the middle are counted, which takes
/// about half a µs, and count as noise when two of them are hardly more often equal than by chance
/// (1 in 256). Base64 is four times, text more than ten times as far from that.
public struct ByteSpread {
  /// Less is never called noise: it is too little to tell.
  public static let minimum = 256
  private static let sample = 512

  private var counts = [UInt32](repeating: 0, count: 256)

  /// Makes one; each thread needs its own.
  public init() {}

  /// Whether the content seems to be noise. False for content below `minimum`.
  public mutating func isNoise(_ content: Span<UInt8>) -> Bool {
    guard content.count >= Self.minimum else { return false }
    // A short file's first half may be its header.
    let length = min(Self.sample, content.count / 2)
    let start = content.count / 2
    let equalPairs = countEqualPairs(content.extracting(start..<(start + length)))
    let byChance = length + length * length / 256
    return equalPairs < byChance + byChance / 4
  }

  /// How many pairs of places hold equal bytes, each place with itself among them.
  private mutating func countEqualPairs(_ bytes: Span<UInt8>) -> Int {
    var counts = counts.mutableSpan
    for index in 0..<256 { counts[index] = 0 }
    for index in bytes.indices { counts[Int(bytes[index])] += 1 }
    var pairs: UInt32 = 0
    for index in 0..<256 { pairs &+= counts[index] &* counts[index] }
    return Int(pairs)
  }
}
