/// A part of a zip archive for libarchive: all bytes before the central directory, a range of its
/// headers, and an end record of its own.
///
/// libarchive holds the whole central directory in memory while it reads an archive, about 160
/// bytes per member (archive_read_support_format_zip.c, `struct zip_entry`). Read in parts, whose
/// members are consecutive in the file, it returns the same members in the same order, and holds
/// only those of one part.
struct ZipPart {
  /// The offset of the central directory in the file and in the part.
  private let directoryStart: UInt64
  /// The range of the headers in the file.
  private let headers: Range<UInt64>
  /// The end of the part, after its headers.
  let end: [UInt8]

  /// The maximum number of members in a part.
  static let members = 1 << 15

  private init(directoryStart: UInt64, headers: Range<UInt64>, count: UInt64) {
    (self.directoryStart, self.headers) = (directoryStart, headers)
    end = Self.records(directoryStart, size: UInt64(headers.count), count: count)
  }

  /// The number of bytes.
  var size: UInt64 { directoryStart + UInt64(headers.count) + UInt64(end.count) }

  /// The location of bytes.
  enum Location {
    /// A range of the file.
    case file(Range<UInt64>)
    /// The rest of `end` from an index.
    case end(Int)
  }

  /// Returns the location of the bytes from a position on.
  func location(of position: UInt64) -> Location {
    if position < directoryStart { return .file(position..<directoryStart) }
    let offset = position - directoryStart
    let size = UInt64(headers.count)
    if offset < size { return .file((headers.lowerBound + offset)..<headers.upperBound) }
    return .end(Int(min(offset - size, UInt64(end.count))))
  }

  /// Returns the records at the end of an archive for 64 bits (APPNOTE.TXT 4.3.14 to 4.3.16), which
  /// are valid for smaller ones, too.
  private static func records(_ directoryStart: UInt64, size: UInt64, count: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    func append(_ numbers: [UInt64], size: Int) {
      for number in numbers {
        bytes += (0..<size).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) }
      }
    }
    append([0x0606_4B50], size: 4)
    append([44], size: 8)
    append([45, 45], size: 2)
    append([0, 0], size: 4)
    append([count, count, size, directoryStart], size: 8)
    append([0x0706_4B50, 0], size: 4)
    append([directoryStart + size], size: 8)
    append([1, 0x0605_4B50], size: 4)
    append([0, 0, 0xFFFF, 0xFFFF], size: 2)
    append([0xFFFF_FFFF, 0xFFFF_FFFF], size: 4)
    append([0], size: 2)
    return bytes
  }
}

extension ZipPart {
  /// Finds the parts of an archive while its central directory is read.
  struct Finder {
    private let members: Int
    private var starts: [UInt64] = []
    /// The number of headers.
    private(set) var count: UInt64 = 0
    private var last: UInt64?
    /// Whether the headers are in the order of the members.
    private var isOrdered = true

    /// - Parameter members: The maximum number of members in a part.
    init(members: Int) { self.members = members }

    /// Adds the next header.
    mutating func add(_ header: ZipCentralDirectory.Header) {
      if count % UInt64(members) == 0 { starts.append(header.start) }
      count += 1
      guard let local = header.local, last.map({ $0 < local }) ?? true else {
        isOrdered = false
        return
      }
      last = local
    }

    /// Returns the parts; none if libarchive is to read the archive as a whole: it is small, its
    /// headers are in another order than its members, or there are bytes before or between its
    /// records. A single part has the whole directory if libarchive would not find the end.
    func parts(of directory: ZipCentralDirectory) -> [ZipPart] {
      let range = directory.range
      guard directory.shift == 0, directory.position == range.upperBound else { return [] }
      if starts.count == 1 || !isOrdered {
        let whole = ZipPart(directoryStart: range.lowerBound, headers: range, count: count)
        return directory.isInReach || count == 0 ? [] : [whole]
      }
      return zip(starts, starts.dropFirst() + [range.upperBound]).enumerated().map { index, ends in
        let before = UInt64(index * members)
        return ZipPart(
          directoryStart: range.lowerBound, headers: ends.0..<ends.1,
          count: min(UInt64(members), count - before))
      }
    }
  }
}

/// The facts about a zip archive in a file that its central directory contains, determined before
/// libarchive reads the archive.
struct ZipOutline {
  /// The bytes of headers to change so that names stay unchanged.
  let nameFlags: ZipNameFlags
  /// The names of the members.
  let names: ZipMemberNames
  /// The parts to read in sequence; empty to read the archive as a whole.
  let parts: [ZipPart]
  /// The number of headers.
  let count: UInt64
  /// Whether libarchive finds the end of the whole archive.
  let isInReach: Bool

  /// Reads the directory, and continues at the start of the input. Returns nil for a stream, and if
  /// there is no valid central directory.
  ///
  /// - Parameter members: The maximum number of members in a part.
  init?(in input: any ArchiveInput, members: Int) {
    guard let size = input.size else { return nil }
    defer { input.seek(to: 0) }
    guard var directory = ZipCentralDirectory(in: input, size: size) else { return nil }
    var (flags, finder) = (ZipNameFlags(), ZipPart.Finder(members: members))
    var names = ZipMemberNames()
    while let header = directory.next() {
      names.add(header)
      flags.add(header, before: directory.range.lowerBound)
      finder.add(header)
    }
    guard directory.isAtEnd else { return nil }
    flags.finish(in: &directory)
    (nameFlags, self.names) = (flags, names)
    (parts, count) = (finder.parts(of: directory), finder.count)
    isInReach = directory.isInReach
  }
}
