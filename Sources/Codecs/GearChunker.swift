/// Cuts content into chunks by what it says, so that an insertion moves no cut but those near it:
/// "gear-1".
///
/// A chunk's first 256 KiB are skipped. From there a hash of the last 64 bytes is kept (shift left
/// by one, add the byte's number in a fixed table), and the chunk ends after the byte where the
/// hash's highest bits are all zero: 22 bits up to 1 MiB, 18 bits beyond, at the latest after
/// 4 MiB. So a chunk of content without patterns has 1.15 MiB in the mean.
///
/// The cuts are part of the repository's format: another table or rule would be another name.
public struct GearChunker: Sendable {
  /// The name of these rules in a repository.
  public static let identifier = "gear-1"
  /// What is skipped at a chunk's begin: chunks are longer, but for the last of a file.
  public static let minimum = 256 << 10
  /// Where the rule gets easier to meet.
  public static let average = 1 << 20
  /// The longest chunk.
  public static let maximum = 4 << 20

  private static let strictMask = UInt64.max << 42
  private static let looseMask = UInt64.max << 46

  private let table: [UInt64]

  /// Makes a chunker; it has no state and may be used by any thread.
  public init() { table = Self.table }

  /// How many bytes from the content's begin are the next chunk.
  ///
  /// Nothing when that cannot be told before there is more content: the caller then gives the same
  /// bytes with more behind them, or says that there is no more. With `maximum` bytes it can always
  /// be told. There is no chunk of no bytes.
  public func cut(in content: Span<UInt8>, isLast: Bool) -> Int? {
    let count = content.count
    if count > Self.minimum, let length = firstCut(content) { return length }
    if count >= Self.maximum { return Self.maximum }
    return isLast && count > 0 ? count : nil
  }

  /// The first place after the minimum, and before the maximum, where the rule is met.
  private func firstCut(_ content: Span<UInt8>) -> Int? {
    let end = min(content.count, Self.maximum)
    let middle = min(end, Self.average)
    var hash: UInt64 = 0
    return unsafe content.withUnsafeBufferPointer { bytes in
      unsafe table.withUnsafeBufferPointer { table in
        var index = Self.minimum
        while index < middle {
          hash = unsafe (hash << 1) &+ table[Int(bytes[index])]
          index &+= 1
          if hash & Self.strictMask == 0 { return index }
        }
        while index < end {
          hash = unsafe (hash << 1) &+ table[Int(bytes[index])]
          index &+= 1
          if hash & Self.looseMask == 0 { return index }
        }
        return nil
      }
    }
  }
}

extension GearChunker {
  /// A number for each byte. Number n is the first eight bytes, the least significant first, of the
  /// BLAKE2b-256 of the text `sandboxctl gear-1 <n>`, n in decimal digits from 0 to 255.
  public static let table: [UInt64] = (0..<256).map { number in
    let digest = Blake2b.hash(Array("sandboxctl \(identifier) \(number)".utf8))
    return digest.word0.byteSwapped
  }

  /// The BLAKE2b-256 of the table, eight bytes a number, the least significant first: what a
  /// repository says of its chunking.
  public static let tableDigest: Digest = {
    var bytes: [UInt8] = []
    for number in table { LittleEndian.append(number, to: &bytes) }
    return Blake2b.hash(bytes)
  }()
}
