/// Distinguishes content with evenly distributed bytes (photos, video, compressed or encrypted
/// data) from text, databases and programs by a sample.
///
/// It is a heuristic to group similar content. It counts the values of 512 bytes from the
/// middle, in about 0.5 µs. The content is noise if two of them are equal hardly more often than by
/// chance (1 in 256). In Base64 two are equal four times as often, in text more than ten times.
public struct ByteSpread {
  /// The minimum size in bytes; smaller content is never classified as noise.
  public static let minimum = 256
  private static let sample = 512

  private var counts = [UInt32](repeating: 0, count: 256)

  /// Creates a classifier. Each thread needs its own.
  public init() {}

  /// Whether the content is probably noise. False for content smaller than `minimum`.
  public mutating func isNoise(_ content: Span<UInt8>) -> Bool {
    guard content.count >= Self.minimum else { return false }
    // The first half of a short file may be its header.
    let length = min(Self.sample, content.count / 2)
    let start = content.count / 2
    let equalPairs = countEqualPairs(content.extracting(start..<(start + length)))
    let byChance = length + length * length / 256
    return equalPairs < byChance + byChance / 4
  }

  /// Returns the number of pairs of positions with equal bytes, including each position with
  /// itself.
  private mutating func countEqualPairs(_ bytes: Span<UInt8>) -> Int {
    var counts = counts.mutableSpan
    for index in 0..<256 { counts[index] = 0 }
    for index in bytes.indices { counts[Int(bytes[index])] += 1 }
    var pairs: UInt32 = 0
    for index in 0..<256 { pairs &+= counts[index] &* counts[index] }
    return Int(pairs)
  }
}

/// The header of every unencrypted SQLite database (fileformat2, section 1.3.1).
public enum DatabaseHead {
  /// The bytes of the header.
  public static let bytes = Array("SQLite format 3\0".utf8)

  /// Whether content begins with the header.
  public static func begins(_ file: Span<UInt8>) -> Bool {
    guard file.count >= bytes.count else { return false }
    for index in bytes.indices where file[index] != bytes[index] { return false }
    return true
  }
}
