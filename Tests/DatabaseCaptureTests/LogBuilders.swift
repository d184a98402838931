import SystemIO

@testable import DatabaseCapture

/// Builds a write-ahead log according to section 4 of SQLite's fileformat2.
struct LogBuilder {
  private(set) var bytes: [UInt8] = []
  let pageSize: Int
  private let isBigEndian: Bool
  private let salts: [UInt8]
  private var sum: (UInt32, UInt32) = (0, 0)

  init(
    pageSize: Int = 512, isBigEndian: Bool = false, salt: UInt8 = 5, version: UInt32 = 3_007_000,
    storedPageSize: UInt32? = nil
  ) {
    self.pageSize = pageSize
    self.isBigEndian = isBigEndian
    salts = [UInt8](repeating: salt, count: 8)
    bytes = word(isBigEndian ? 0x377f_0683 : 0x377f_0682) + word(version)
    bytes += word(storedPageSize ?? UInt32(pageSize)) + word(0) + salts
    add(bytes)
    bytes += word(sum.0) + word(sum.1)
  }

  /// Adds a frame. One with the size of the database in pages ends a transaction.
  mutating func frame(_ number: UInt32, _ page: [UInt8], size: UInt32 = 0) {
    let start = word(number) + word(size)
    add(start)
    add(page)
    bytes += start + salts + word(sum.0) + word(sum.1) + page
  }

  private mutating func add(_ bytes: [UInt8]) {
    for position in stride(from: 0, to: bytes.count, by: 8) {
      sum.0 &+= number(bytes[position..<(position + 4)]) &+ sum.1
      sum.1 &+= number(bytes[(position + 4)..<(position + 8)]) &+ sum.0
    }
  }

  private func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    let ordered = isBigEndian ? Array(bytes) : bytes.reversed()
    return ordered.reduce(0) { $0 << 8 | UInt32($1) }
  }
}

/// Builds a rollback journal according to section 3 of SQLite's fileformat2.
struct JournalBuilder {
  private(set) var bytes: [UInt8] = []
  let pageSize: Int
  private let pageCount: UInt32
  private let sectorSize: Int
  private var nonce: UInt32 = 0

  init(pageSize: Int = 512, pageCount: UInt32, sectorSize: Int = 512) {
    self.pageSize = pageSize
    self.pageCount = pageCount
    self.sectorSize = sectorSize
  }

  /// Begins a segment at the next sector, which claims this number of records.
  mutating func segment(_ records: UInt32, nonce: UInt32 = 77) {
    self.nonce = nonce
    fillSector()
    bytes += journalMagic + word(records) + word(nonce) + word(pageCount)
    bytes += word(UInt32(sectorSize)) + word(UInt32(pageSize))
    fillSector()
  }

  mutating func record(_ number: UInt32, _ page: [UInt8], sumIsOff: Bool = false) {
    var sum = nonce
    var position = pageSize - 200
    while position > 0 {
      sum &+= UInt32(page[position])
      position -= 200
    }
    bytes += word(number) + page + word(sumIsOff ? sum ^ 1 : sum)
  }

  /// Ends the journal with the name of a super-journal.
  mutating func superJournal(_ name: [UInt8], hasSign: Bool = false) {
    fillSector()
    let sum = name.reduce(UInt32(0)) { sum, byte in
      let number = hasSign ? Int32(Int8(bitPattern: byte)) : Int32(byte)
      return sum &+ UInt32(bitPattern: number)
    }
    bytes += word(UInt32(0x4000_0000 / pageSize) + 1) + name + word(UInt32(name.count))
    bytes += word(sum) + journalMagic
  }

  private mutating func fillSector() {
    bytes += [UInt8](repeating: 0, count: (sectorSize - bytes.count % sectorSize) % sectorSize)
  }
}

func word(_ value: UInt32) -> [UInt8] {
  [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
}

/// Returns a page filled with its own number.
func page(_ value: UInt8, _ size: Int = 512) -> [UInt8] { [UInt8](repeating: value, count: size) }

/// Returns pages of 512 bytes, each filled with its own number.
func pages(_ values: UInt8...) -> [UInt8] { values.flatMap { page($0) } }

/// Returns a parser's result for a log in memory.
func overlay(_ log: [UInt8], _ parser: some LogParser) throws(LogRefusal) -> PageOverlay? {
  var parser = parser
  while let range = parser.next {
    precondition(range.upperBound <= log.count && range.count < 66 << 10)
    try parser.parse(log.span.extracting(Int(range.lowerBound)..<Int(range.upperBound)))
  }
  return parser.overlay()
}

/// Returns the database with its log applied, or unchanged if the log has no effect. The database
/// is read in pieces of `piece` bytes.
func merged(
  _ database: [UInt8], _ log: [UInt8], _ overlay: PageOverlay?, piece: Int = 700
) throws -> [UInt8] {
  guard let overlay else { return database }
  var merge = PageOverlay.Merge(overlay)
  var result: [UInt8] = []
  let pages: PageOverlay.Merge.Log = { $2 = Array(log[Int($0)..<(Int($0) + $1)]) }
  for start in stride(from: 0, to: database.count, by: piece) {
    let range = start..<min(start + piece, database.count)
    try merge.append(database.span.extracting(range), pages) { result.append(copying: $0) }
  }
  try merge.finish(pages) { result.append(copying: $0) }
  return result
}
