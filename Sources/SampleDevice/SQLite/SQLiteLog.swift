/// A write-ahead log with committed transactions that the database file lacks (SQLite file format,
/// section 4).
struct SQLiteLog {
  /// The bytes of the log.
  private(set) var bytes: [UInt8] = []
  private let salts: [UInt8]
  private var checksum: (UInt32, UInt32) = (0, 0)

  /// Creates the log of `commits` after `base`: for each commit the pages that differ from the
  /// previous state, the last one marked with the size of the database. The database never shrinks.
  init(after base: SQLiteImage, commits: [SQLiteImage], salt: UInt64) {
    salts = salt.bigEndianBytes()
    addHeader()
    var before = base.pages
    for commit in commits {
      add(commit.pages, changedFrom: before)
      before = commit.pages
    }
  }

  /// Appends the header (section 4.1): magic for big-endian checksums, version, page size,
  /// checkpoint number, salts and the checksum of all these.
  private mutating func addHeader() {
    bytes = UInt32(0x377f_0683).bigEndianBytes() + UInt32(3_007_000).bigEndianBytes()
    bytes += UInt32(SQLitePage.size).bigEndianBytes() + UInt32(0).bigEndianBytes() + salts
    sum(bytes[...])
    bytes += checksum.0.bigEndianBytes() + checksum.1.bigEndianBytes()
  }

  private mutating func add(_ pages: [[UInt8]], changedFrom before: [[UInt8]]) {
    precondition(pages.count >= before.count)
    let changed = pages.indices.filter { $0 >= before.count || pages[$0] != before[$0] }
    for index in changed {
      let isLast = index == changed.last
      addFrame(page: index + 1, size: isLast ? pages.count : 0, pages[index])
    }
  }

  /// Appends a frame: page number, size of the database after a commit or 0, salts, the checksum of
  /// everything before except the salts, and the page.
  private mutating func addFrame(page: Int, size: Int, _ content: [UInt8]) {
    let head = UInt32(page).bigEndianBytes() + UInt32(size).bigEndianBytes()
    sum(head[...])
    sum(content[...])
    bytes += head + salts + checksum.0.bigEndianBytes() + checksum.1.bigEndianBytes() + content
  }

  /// Continues the checksum over pairs of big-endian words (section 4.2).
  private mutating func sum(_ bytes: ArraySlice<UInt8>) {
    var at = bytes.startIndex
    func word(_ at: Int) -> UInt32 {
      UInt32(bytes[at]) << 24 | UInt32(bytes[at + 1]) << 16
        | UInt32(bytes[at + 2]) << 8 | UInt32(bytes[at + 3])
    }
    while at < bytes.endIndex {
      checksum.0 = checksum.0 &+ word(at) &+ checksum.1
      checksum.1 = checksum.1 &+ word(at + 4) &+ checksum.0
      at += 8
    }
  }
}
