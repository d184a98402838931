/// Tells from a sample what makes content smaller, so that no time goes into what does not.
///
/// Up to four pieces of 16 KiB, spread evenly, are compressed at level 1, which looks for repeats and
/// codes the rest by how often each byte comes, and again without the latter. It is an estimate: what
/// repeats only over a distance, as a file that holds one photo twice, is missed, which costs space and
/// nothing else. Four pieces of text take about 0.13 ms, and as much again for the second question; of
/// noise 0.03 ms.
public struct CompressionProbe: ~Copyable {
  /// What makes content smaller.
  public enum Answer: Hashable, Sendable {
    /// Repeats, and that some bytes come oftener than others.
    case all
    /// Repeats; of the rest, which is mostly noise, coding takes less than a 12th off.
    case repeats
    /// Hardly anything: it shrinks by less than a 32nd. Text and databases are far on one side of
    /// that, encrypted and already compressed data on the other.
    case nothing
  }

  /// What is smaller is not looked at: it costs less to compress than to wonder.
  public static let minimum = 4096
  private static let pieceSize = 16 << 10
  private static let quick = ZstdMethod(level: 1)
  private static let quickRepeats = ZstdMethod(level: 1, storesLiterals: true)

  private var compressor: ZstdCompressor
  private var scratch: [UInt8] = []

  /// Makes a probe; each thread needs its own.
  public init() throws(CodecError) { compressor = try ZstdCompressor(Self.quick) }

  /// What makes the content smaller. `all` for content below `minimum`, and where the sample could not
  /// be compressed; `repeats` is never said unless it is looked for.
  public mutating func ask(_ content: Span<UInt8>, looksForRepeats: Bool) -> Answer {
    guard content.count >= Self.minimum, let size = sampleSize(content, by: Self.quick) else {
      return .all
    }
    let sampled = Self.pieces(content.count) * min(Self.pieceSize, content.count)
    if size > sampled - sampled / 32 { return .nothing }
    guard looksForRepeats, let alone = sampleSize(content, by: Self.quickRepeats) else {
      return .all
    }
    return alone - size < size / 12 ? .repeats : .all
  }

  private static func pieces(_ count: Int) -> Int { min(4, max(1, count / (2 * pieceSize))) }

  /// How large the sample's pieces are, compressed by a method.
  private mutating func sampleSize(_ content: Span<UInt8>, by method: ZstdMethod) -> Int? {
    let pieces = Self.pieces(content.count)
    let length = min(Self.pieceSize, content.count)
    scratch.removeAll(keepingCapacity: true)
    for piece in 0..<pieces {
      let middle = (2 * piece + 1) * content.count / (2 * pieces)
      let start = min(max(0, middle - length / 2), content.count - length)
      let sample = content.extracting(start..<(start + length))
      guard (try? compressor.compress(sample, by: method, appendingTo: &scratch)) != nil else {
        return nil
      }
    }
    return scratch.count
  }
}
