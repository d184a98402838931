/// A content-defined chunker: an insertion changes only the cuts near it. The algorithm is named
/// "gear-1".
///
/// The first 256 KiB of a chunk are skipped. From there a rolling hash of the last 64 bytes is
/// computed (shift left by one, add the byte's number from a fixed table). The chunk ends after the
/// byte where the highest bits of the hash are zero: 22 bits up to 1 MiB, 18 bits beyond, and at
/// most 4 MiB. Content without patterns yields chunks of 1.15 MiB on average.
///
/// The cuts are part of the repository format: a different table or rule requires a different name.
public struct GearChunker: Sendable {
  /// The name of the algorithm in a repository.
  public static let identifier = "gear-1"
  /// The bytes skipped at the beginning of a chunk. All chunks are longer, except the last of a
  /// file.
  public static let minimum = 256 << 10
  /// The length from which the looser rule applies.
  public static let average = 1 << 20
  /// The maximum length of a chunk.
  public static let maximum = 4 << 20

  private static let strictMask = UInt64.max << 42
  private static let looseMask = UInt64.max << 46

  private let table: [UInt64]

  /// Creates a chunker. It has no state and can be shared between threads.
  public init() { table = Self.table }

  /// The state of a search for the end of a chunk.
  public struct Progress: Sendable {
    fileprivate var index = GearChunker.minimum
    fileprivate var hash: UInt64 = 0

    /// Creates the state for the beginning of a chunk.
    public init() {}
  }

  /// Returns the length of the next chunk at the beginning of the content.
  ///
  /// Nil if that depends on more content: the caller then passes the same bytes with more after
  /// them, or sets `isLast`. Never nil for `maximum` or more bytes. An empty chunk is never
  /// returned.
  public func cut(in content: Span<UInt8>, isLast: Bool) -> Int? {
    var progress = Progress()
    return cut(in: content, isLast: isLast, after: &progress)
  }

  /// Returns the length of the next chunk at the beginning of the content. Examines only bytes
  /// added since the previous call for the same chunk.
  public func cut(in content: Span<UInt8>, isLast: Bool, after progress: inout Progress) -> Int? {
    let count = content.count
    if count > Self.minimum, let length = firstCut(content, &progress) { return length }
    if count >= Self.maximum { return Self.maximum }
    return isLast && count > 0 ? count : nil
  }

  /// Returns the first cut between the minimum and the maximum.
  private func firstCut(_ content: Span<UInt8>, _ progress: inout Progress) -> Int? {
    let end = min(content.count, Self.maximum)
    return unsafe content.withUnsafeBufferPointer { bytes in
      unsafe table.withUnsafeBufferPointer { table in
        unsafe Self.find(
          Self.strictMask, in: bytes, before: min(end, Self.average), table: table,
          progress: &progress)
          ?? Self.find(Self.looseMask, in: bytes, before: end, table: table, progress: &progress)
      }
    }
  }

  /// Returns the first cut before `end` at which none of the mask's bits is set.
  @inline(__always)
  private static func find(
    _ mask: UInt64, in bytes: UnsafeBufferPointer<UInt8>, before end: Int,
    table: UnsafeBufferPointer<UInt64>, progress: inout Progress
  ) -> Int? {
    var (index, hash) = (progress.index, progress.hash)
    // Four bytes at a time, their numbers added first, so that a hash need not wait for the
    // previous one. The same loops in C take 0.42 and 0.70 ns a byte.
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
  /// A number for each byte. Number n is the first eight bytes, little-endian, of the BLAKE2b-256
  /// of the text `sandboxctl gear-1 <n>`, with n in decimal from 0 to 255.
  public static let table: [UInt64] = (0..<256).map { number in
    let digest = Blake2b.hash(Array("sandboxctl \(identifier) \(number)".utf8))
    return digest.word0.byteSwapped
  }

  /// The BLAKE2b-256 of the table as little-endian 64-bit numbers, which a repository records.
  public static let tableDigest: Digest = {
    var bytes: [UInt8] = []
    for number in table { LittleEndian.append(number, to: &bytes) }
    return Blake2b.hash(bytes)
  }()
}
