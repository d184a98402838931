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

  /// How far a chunk has been looked through while its end was not found.
  public struct Progress: Sendable {
    fileprivate var index = GearChunker.minimum
    fileprivate var hash: UInt64 = 0

    /// Nothing was looked at yet.
    public init() {}
  }

  /// How many bytes from the content's begin are the next chunk.
  ///
  /// Nothing when that cannot be told before there is more content: the caller then gives the same
  /// bytes with more behind them, or says that there is no more. With `maximum` bytes it can always
  /// be told. There is no chunk of no bytes.
  public func cut(in content: Span<UInt8>, isLast: Bool) -> Int? {
    var progress = Progress()
    return cut(in: content, isLast: isLast, after: &progress)
  }

  /// How many bytes from the content's begin are the next chunk; looks only at what came since the
  /// call before, which was for the same chunk.
  public func cut(in content: Span<UInt8>, isLast: Bool, after progress: inout Progress) -> Int? {
    let count = content.count
    if count > Self.minimum, let length = firstCut(content, &progress) { return length }
    if count >= Self.maximum { return Self.maximum }
    return isLast && count > 0 ? count : nil
  }

  /// The first place after the minimum, and before the maximum, where the rule is met.
  private func firstCut(_ content: Span<UInt8>, _ progress: inout Progress) -> Int? {
    let end = min(content.count, Self.maximum)
    return unsafe content.withUnsafeBufferPointer { bytes in
      unsafe table.withUnsafeBufferPointer { table in
        unsafe Self.find(Self.strictMask, bytes, min(end, Self.average), table, &progress)
          ?? Self.find(Self.looseMask, bytes, end, table, &progress)
      }
    }
  }

  /// The first place before `end` behind which none of the mask's bits is set.
  @inline(__always)
  private static func find(
    _ mask: UInt64, _ bytes: UnsafeBufferPointer<UInt8>, _ end: Int,
    _ table: UnsafeBufferPointer<UInt64>, _ progress: inout Progress
  ) -> Int? {
    var (index, hash) = (progress.index, progress.hash)
    // Four bytes a turn, their numbers added up first: so a hash need not wait for the one before it.
    // The same loops in C take 0.42 and 0.70 ns a byte.
    while end &- index >= 4 {
      let first = unsafe table[Int(bytes[index])]
      let second = unsafe (first << 1) &+ table[Int(bytes[index &+ 1])]
      let third = unsafe (second << 1) &+ table[Int(bytes[index &+ 2])]
      let fourth = unsafe (third << 1) &+ table[Int(bytes[index &+ 3])]
      if ((hash << 1) &+ first) & mask == 0 { return index &+ 1 }
      if ((hash << 2) &+ second) & mask == 0 { return index &+ 2 }
      if ((hash << 3) &+ third) & mask == 0 { return index &+ 3 }
      hash = (hash << 4) &+ fourth
      if hash & mask == 0 { return index &+ 4 }
      index &+= 4
    }
    while index < end {
      hash = unsafe (hash << 1) &+ table[Int(bytes[index])]
      index &+= 1
      if hash & mask == 0 { return index }
    }
    progress.index = index
    progress.hash = hash
    return nil
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
