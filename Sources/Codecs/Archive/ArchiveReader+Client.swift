internal import CArchive
internal import Glibc

extension ArchiveReader {
  /// The callbacks' view of the input. The reader keeps it alive as long as libarchive's reader.
  @safe final class Client {
    private let input: any ArchiveInput
    /// The input, if it decodes a compressed archive.
    let decoded: DecodedInput?
    /// The offset of the next byte of the input.
    private var inputPosition: UInt64 = 0
    private var scratch = [UInt8](repeating: 0, count: Client.size)
    /// The bytes passed to libarchive last, which must not move until the next call.
    private let buffer: UnsafeMutableBufferPointer<UInt8>
    /// The positions of these bytes: libarchive seeks to each member of a zip archive, and gets
    /// bytes that are already there without another read.
    private var held: Range<UInt64> = 0..<0
    private var position: UInt64 = 0
    /// The bytes before those, without gaps, for the headers of the current member.
    private var recent: [(start: UInt64, bytes: [UInt8])] = []
    /// The bytes read so far, while another reader may begin again; nil if none will.
    private var kept: [UInt8]?
    /// The bytes that come before those of the input.
    private var repeated: ArraySlice<UInt8> = []
    private var hasFailed = false
    /// Whether a header had the list of an incremental archive (`HeaderNames.listsUnchanged`).
    private(set) var listsUnchanged = false
    /// The facts of a zip archive.
    private let outline: ZipOutline?
    /// The part of a zip archive that libarchive gets; nil for the whole archive.
    private var part: ZipPart?
    /// The number of parts up to this one.
    private var partCount = 0

    private static let size = 256 << 10
    /// The number of bytes to keep before those passed last: an extended header, which libarchive
    /// limits to 1 MiB, and one that precedes it.
    private static let recentLimit = 3 << 19
    /// The maximum number of bytes to keep. The first header of a tar is at most a few decompressor
    /// blocks after the start.
    private static let keptLimit = 64 << 20
    /// The number of bytes after an archive that are examined. The record of zeros with which tar
    /// ends an archive is shorter.
    private static let trailerLimit = 1 << 20

    /// - Parameters:
    ///   - isRepeatable: whether a second reader may begin again.
    ///   - partSize: the maximum number of members in a part of a zip archive.
    ///   - isDecoding: whether to decode a compressed archive.
    init(
      _ stored: any ArchiveInput, isRepeatable: Bool, partSize: Int, isDecoding: Bool
    ) throws(CodecError) {
      (input, decoded) = isDecoding ? try DecodedInput.opening(stored) : (stored, nil)
      outline = ZipOutline(in: input, members: partSize)
      kept = isRepeatable ? [] : nil
      unsafe buffer = .allocate(capacity: Self.size)
      unsafe buffer.initialize(repeating: 0)
    }

    deinit { unsafe buffer.deallocate() }

    /// Whether libarchive gets the names of a zip archive without their flags, and so does not
    /// convert them.
    var keepsZipNames: Bool { outline != nil }

    /// The number of members of a zip archive according to its directory; nil if unknown.
    var zipCount: UInt64? { outline?.count }

    /// The bytes before a zip archive in a file; nil if there are none. Called at its end.
    var zipLead: ZipCentralDirectory.Lead? {
      input.size.flatMap { ZipCentralDirectory.lead(in: input, size: $0) }
    }

    /// Whether libarchive reads a zip archive in a file by its directory. Called at its end.
    var hasZipDirectory: Bool {
      guard let size = input.size, part == nil else { return true }
      if let outline { return outline.isInReach }
      // Other bytes precede or follow the archive, or its directory has a fault.
      let count = Int(min(size, UInt64(ZipCentralDirectory.reach)))
      input.seek(to: size - UInt64(count))
      var tail: [UInt8] = []
      while tail.count < count, !hasFailed {
        let found = input.read(into: &scratch)
        hasFailed = found < 0
        if found <= 0 { break }
        tail += scratch.prefix(found)
      }
      return tail.indices.dropLast(ZipCentralDirectory.endSize - 1).contains {
        tail[$0...].starts(with: ZipCentralDirectory.endSignature)
      }
    }

    /// Returns the name with a NUL for which libarchive got another one, or nil for other names.
    func name(for path: [UInt8]) -> [UInt8]? {
      guard let names = outline?.nameFlags.names, !names.isEmpty else { return nil }
      // libarchive ends the name of a directory with a slash.
      return names[path] ?? (path.last == UInt8(ascii: "/") ? names[Array(path.dropLast())] : nil)
    }

    /// Whether the directory of a zip archive has another name for the member with a number.
    /// Unknown, and false, if libarchive reads the archive as a stream.
    func isRenamed(_ member: ArchiveMember, at number: Int) -> Bool {
      guard let outline, let path = member.path, part != nil || outline.isInReach else {
        return false
      }
      return outline.names.differs(path, at: number)
    }

    /// The number of bytes that libarchive can read; nil for a stream.
    private var archiveSize: UInt64? { part?.size ?? input.size }

    /// Reads to the end of a compressed archive, since a checksum may follow the last member, and
    /// returns its damage.
    ///
    /// - Throws: `library` if the input failed, and keeps its error.
    func finishDecoding() throws(CodecError) -> DecodingFailure? {
      guard let decoded else { return nil }
      var count = 1
      while count > 0, !hasFailed { count = decoded.read(into: &scratch) }
      if hasFailed || count < 0 {
        throw CodecError(.library, in: .archive, reason: "its bytes cannot be read")
      }
      return decoded.failure
    }

    /// Returns the failure of compressed data near its start that makes it an archive of no known
    /// format: damage changes a whole block of bzip2. Other data after its end is not a failure.
    func damageAtStart() -> CodecError? {
      guard let decoded else { return nil }
      var left = Self.keptLimit
      while left > 0, !hasFailed {
        let count = decoded.read(into: &scratch)
        hasFailed = count < 0
        if count <= 0 { break }
        left -= count
      }
      guard let failure = decoded.failure else { return nil }
      let isTrailing = failure.error.kind == .malformed && !failure.isSuspect
      return isTrailing ? nil : failure.error
    }

    /// Whether another tar archive follows a position up to which libarchive has read one, after
    /// any zeros. Other data does not count: old programs wrote the rest of their buffer.
    func hasTar(after end: UInt64) -> Bool {
      var start = max(end, held.lowerBound)
      start += UInt64(PaxMember.padding(after: start))
      let skipped = Int(min(start, held.upperBound) - held.lowerBound)
      var rest = unsafe Array(buffer[skipped..<held.count])
      while rest.count < Self.trailerLimit, !hasFailed {
        let count = input.read(into: &scratch)
        hasFailed = count < 0
        if count <= 0 { break }
        rest += scratch.prefix(count)
      }
      return TarBlock.isHeader(firstOf: rest)
    }

    /// Whether another zip archive follows one in a stream whose members libarchive has read up to
    /// a position. In a file libarchive reads the last one.
    func hasZip(after end: UInt64) -> Bool {
      guard input.size == nil else { return false }
      let skipped = Int(min(max(end, held.lowerBound), held.upperBound) - held.lowerBound)
      let rest = unsafe Array(buffer[skipped..<held.count]) + repeated
      var trailer = ZipTrailer(rest) { [self] in
        let count = hasFailed ? 0 : input.read(into: &scratch)
        hasFailed = hasFailed || count < 0
        return Array(scratch.prefix(max(0, count)))
      }
      return trailer.isFollowed()
    }

    func open(_ archive: OpaquePointer) -> Int32 {
      unsafe archive_read_set_read_callback(archive, readClient)
      if input.size != nil {
        unsafe archive_read_set_skip_callback(archive, skipClient)
        unsafe archive_read_set_seek_callback(archive, seekClient)
      }
      unsafe archive_read_set_callback_data(archive, Unmanaged.passUnretained(self).toOpaque())
      return unsafe archive_read_open1(archive)
    }

    /// Lets the next reader begin again. Returns false if the start was not kept.
    func beginAgain() -> Bool {
      guard let bytes = kept.take() else { return false }
      (repeated, position, held, recent) = (bytes[...], 0, 0..<0, [])
      return true
    }

    /// Keeps nothing, because this reader is the last one.
    func endRepeatable() { kept = nil }

    /// Lets the next reader read the first part of a zip archive. Returns false if it is read as a
    /// whole.
    func beginParts() -> Bool { begin(0) }

    /// Lets the next reader read the next part. Returns false after the last one, and if the
    /// archive is read as a whole.
    func beginNextPart() -> Bool { part != nil && begin(partCount) }

    /// Lets the next reader read the whole archive.
    func endParts() {
      part = nil
      restart()
    }

    private func begin(_ number: Int) -> Bool {
      guard let parts = outline?.parts, number < parts.count else { return false }
      (part, partCount) = (parts[number], number + 1)
      restart()
      return true
    }

    private func restart() {
      (kept, repeated, position, held, recent) = (nil, [], 0, 0..<0, [])
    }

    /// Sets the names that libarchive truncates at a NUL. They are unknown if libarchive
    /// decompresses the archive.
    func setNamesWithNUL(of member: inout ArchiveMember, in archive: OpaquePointer) {
      guard unsafe archive_filter_code(archive, 0) == ARCHIVE_FILTER_NONE,
        let format = unsafe headerFormat(of: archive)
      else { return }
      let start = unsafe UInt64(clamping: archive_read_header_position(archive))
      let names = HeaderNames(format) { bytes($1, at: start + UInt64($0)) }
      if names.listsUnchanged { listsUnchanged = true }
      if let path = names.path { member.path = path }
      guard let target = names.link else { return }
      switch member.kind {
      case .hardLink(_, let size): member.kind = .hardLink(target: target, size: size)
      case .symbolicLink: member.kind = .symbolicLink(target: target)
      default: break
      }
    }

    /// The format of the headers, if it is one in which names can contain a NUL.
    private func headerFormat(of archive: OpaquePointer) -> HeaderNames.Format? {
      switch unsafe archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK {
      case ARCHIVE_FORMAT_TAR: .tar
      case ARCHIVE_FORMAT_CPIO: .cpio
      case ARCHIVE_FORMAT_ZIP: keepsZipNames ? nil : .zip
      default: nil
      }
    }

    /// Returns bytes that were read, or nil if they are no longer there.
    private func bytes(_ count: Int, at start: UInt64) -> [UInt8]? {
      let end = start + UInt64(count)
      guard (recent.first?.start ?? held.lowerBound) <= start, end <= held.upperBound else {
        return nil
      }
      var found: [UInt8] = []
      for part in recent where part.start + UInt64(part.bytes.count) > start && part.start < end {
        // At the end of the input, no others have replaced those passed last.
        if part.start >= held.lowerBound { break }
        let first = Int(max(start, part.start) - part.start)
        found += part.bytes[first..<min(part.bytes.count, Int(end - part.start))]
      }
      if end > held.lowerBound, count > 0 {
        let first = Int(max(start, held.lowerBound) - held.lowerBound)
        let part = unsafe Array(buffer[first..<Int(end - held.lowerBound)])
        found += part
      }
      return found
    }

    /// Keeps the bytes that others will replace, if those follow them.
    private func keepRecent() {
      guard outline == nil, position == held.upperBound else {
        recent = []
        return
      }
      if held.isEmpty || recent.last?.start == held.lowerBound { return }
      recent.append((held.lowerBound, unsafe Array(buffer[..<held.count])))
      while let first = recent.first,
        held.upperBound - first.start - UInt64(first.bytes.count) >= UInt64(Self.recentLimit)
      { recent.removeFirst() }
    }

    func read(_ pointer: UnsafeMutablePointer<UnsafeRawPointer?>?) -> Int {
      if !held.contains(position) || kept != nil || !repeated.isEmpty {
        keepRecent()
        let count = repeated.isEmpty ? readNext() : readAgain()
        guard count > 0 else { return count }
        held = position..<(position + UInt64(count))
      }
      let start = Int(position - held.lowerBound)
      unsafe pointer?.pointee = UnsafeRawPointer(buffer.baseAddress)?.advanced(by: start)
      let count = Int(held.upperBound - position)
      position = held.upperBound
      return count
    }

    /// Reads the bytes at the position into the buffer.
    private func readNext() -> Int {
      guard let part else { return readInput(from: position, limit: .max) }
      switch part.location(of: position) {
      case .file(let range):
        return readInput(from: range.lowerBound, limit: range.count)
      case .end(let start):
        let rest = part.end[start...]
        _ = unsafe buffer.update(fromContentsOf: rest)
        return rest.count
      }
    }

    private func readInput(from offset: UInt64, limit: Int) -> Int {
      if hasFailed { return -1 }
      if offset != inputPosition { input.seek(to: offset) }
      let found = input.read(into: &scratch)
      hasFailed = found < 0
      guard found > 0 else { return found }
      inputPosition = offset + UInt64(found)
      let count = min(found, limit)
      outline?.nameFlags.apply(to: &scratch, count: count, at: offset)
      _ = unsafe buffer.update(fromContentsOf: scratch.prefix(count))
      if let size = kept?.count {
        if size + count > Self.keptLimit {
          kept = nil
        } else {
          kept?.append(contentsOf: scratch.prefix(count))
        }
      }
      return count
    }

    private func readAgain() -> Int {
      let portion = repeated.prefix(Self.size)
      _ = unsafe buffer.update(fromContentsOf: portion)
      repeated.removeFirst(portion.count)
      return portion.count
    }

    func skip(_ count: Int64) -> Int64 {
      // The kept bytes must have no gaps: libarchive reads the skipped ones instead.
      guard kept == nil else { return 0 }
      let left = (archiveSize ?? 0) - min(archiveSize ?? 0, position)
      let skipped = min(UInt64(max(0, count)), left)
      move(to: position + skipped)
      return Int64(skipped)
    }

    private func move(to offset: UInt64) { (position, repeated) = (offset, []) }

    func seek(_ offset: Int64, _ origin: Int32) -> Int64 {
      // The reader of tar never does.
      guard kept == nil else { return Int64(ARCHIVE_FATAL) }
      let base: UInt64 =
        switch origin {
        case SEEK_CUR: position
        case SEEK_END: archiveSize ?? 0
        default: 0
        }
      let goal = Int64(clamping: base).addingReportingOverflow(offset)
      guard !goal.overflow, goal.partialValue >= 0 else { return Int64(ARCHIVE_FATAL) }
      move(to: UInt64(goal.partialValue))
      return goal.partialValue
    }
  }
}

private func client(_ pointer: UnsafeMutableRawPointer?) -> ArchiveReader.Client? {
  guard let pointer = unsafe pointer else { return nil }
  return unsafe Unmanaged<ArchiveReader.Client>.fromOpaque(pointer).takeUnretainedValue()
}

private func readClient(
  _: OpaquePointer?, data: UnsafeMutableRawPointer?,
  pointer: UnsafeMutablePointer<UnsafeRawPointer?>?
) -> Int {
  unsafe client(data)?.read(pointer) ?? -1
}

private func skipClient(
  _: OpaquePointer?, data: UnsafeMutableRawPointer?, count: Int64
) -> Int64 {
  unsafe client(data)?.skip(count) ?? 0
}

private func seekClient(
  _: OpaquePointer?, data: UnsafeMutableRawPointer?, offset: Int64, origin: Int32
) -> Int64 {
  unsafe client(data)?.seek(offset, origin) ?? Int64(ARCHIVE_FATAL)
}
