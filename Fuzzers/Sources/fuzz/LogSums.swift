/// Corrects checksums of write-ahead logs and journals, and creates seeds with correct checksums.
enum LogSums {
  /// Returns the bytes with corrected salts and checksums of a write-ahead log, or with corrected
  /// checksums of the records in a journal's first segment.
  static func corrected(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.count >= 32 else { return bytes }
    var bytes = bytes
    let magic = word(bytes, 0)
    if magic & ~1 == 0x377f_0682 { correctLog(&bytes, isBigEndian: magic & 1 == 1) }
    if magic == 0xd9d5_05f9 { correctJournal(&bytes) }
    return bytes
  }

  private static func correctLog(_ bytes: inout [UInt8], isBigEndian: Bool) {
    let pageSize = Int(word(bytes, 8))
    guard (512...65_536).contains(pageSize), pageSize % 8 == 0 else { return }
    var sum: (UInt32, UInt32) = (0, 0)
    add(bytes[0..<24], to: &sum, isBigEndian)
    put(sum.0, at: 24, in: &bytes)
    put(sum.1, at: 28, in: &bytes)
    var at = 32
    while bytes.count - at >= 24 + pageSize {
      bytes.replaceSubrange((at + 8)..<(at + 16), with: bytes[16..<24])
      add(bytes[at..<(at + 8)], to: &sum, isBigEndian)
      add(bytes[(at + 24)..<(at + 24 + pageSize)], to: &sum, isBigEndian)
      put(sum.0, at: at + 16, in: &bytes)
      put(sum.1, at: at + 20, in: &bytes)
      at += 24 + pageSize
    }
  }

  private static func add(
    _ bytes: ArraySlice<UInt8>, to sum: inout (UInt32, UInt32), _ isBigEndian: Bool
  ) {
    let all = Array(bytes)
    for location in stride(from: 0, to: all.count, by: 8) {
      let (first, second) = (word(all, location), word(all, location + 4))
      sum.0 &+= (isBigEndian ? first : first.byteSwapped) &+ sum.1
      sum.1 &+= (isBigEndian ? second : second.byteSwapped) &+ sum.0
    }
  }

  private static func correctJournal(_ bytes: inout [UInt8]) {
    let (sectorSize, pageSize) = (Int(word(bytes, 20)), Int(word(bytes, 24)))
    guard (32...65_536).contains(sectorSize), (512...65_536).contains(pageSize) else { return }
    var (at, left) = (sectorSize, word(bytes, 8))
    while left > 0, bytes.count - at >= pageSize + 8 {
      var sum = word(bytes, 12)
      for location in stride(from: pageSize - 200, to: 0, by: -200) {
        sum &+= UInt32(bytes[at + 4 + location])
      }
      put(sum, at: at + 4 + pageSize, in: &bytes)
      (at, left) = (at + pageSize + 8, left - 1)
    }
  }

  private static func word(_ bytes: [UInt8], _ location: Int) -> UInt32 {
    bytes[location..<(location + 4)].reduce(0) { $0 << 8 | UInt32($1) }
  }

  private static func put(_ value: UInt32, at location: Int, in bytes: inout [UInt8]) {
    bytes.replaceSubrange(location..<(location + 4), with: stored(value))
  }

  private static func stored(_ value: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
  }

  // MARK: - Seeds

  /// Write-ahead logs in both byte orders, with two transactions and part of a third; journals of
  /// one and of two segments, and one with a super-journal's name.
  static var seeds: [(target: String, bytes: [UInt8])] {
    let journal = segment(2) + record(1) + record(3)
    let second = padded(journal) + segment(1) + record(2)
    let name = Array("/x-mj1".utf8)
    let sum = name.reduce(UInt32(0)) { $0 + UInt32($1) }
    let several =
      padded(journal) + stored(0x4000_0000 / 512 + 1) + name + stored(UInt32(name.count))
      + stored(sum) + segment(0).prefix(8)
    let logs = [log(0x377f_0682), log(0x377f_0683)]
    let journals = [journal, second, segment(.max) + record(1), several]
    return (logs + journals).map { ("log", corrected($0)) }
  }

  private static func log(_ magic: UInt32) -> [UInt8] {
    let header = stored(magic) + stored(3_007_000) + stored(512)
    let frames: [(UInt32, UInt32)] = [(2, 0), (4, 4), (2, 3), (1, 0)]
    return frames.reduce(header + [UInt8](repeating: 5, count: 20)) { bytes, frame in
      bytes + stored(frame.0) + stored(frame.1) + page(16, UInt8(frame.0))
        + page(512, UInt8(frame.0))
    }
  }

  private static func segment(_ records: UInt32) -> [UInt8] {
    let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
    return padded(
      magic + stored(records) + stored(77) + stored(3) + stored(512) + stored(512))
  }

  private static func record(_ number: UInt32) -> [UInt8] {
    let page = page(512, UInt8(number))
    return stored(number) + page + stored(77 + 2 * number)
  }

  private static func page(_ count: Int, _ value: UInt8) -> [UInt8] {
    [UInt8](repeating: value, count: count)
  }

  private static func padded(_ bytes: [UInt8]) -> [UInt8] {
    bytes + [UInt8](repeating: 0, count: (512 - bytes.count % 512) % 512)
  }
}
