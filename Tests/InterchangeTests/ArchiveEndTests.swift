import ArchiveStore
import Codecs
import Foundation
import Interchange
import SystemIO
import TestSupport
import Testing

/// Ends of archives: missing, in the middle of a file, and followed by another archive.
struct ArchiveEndTests {
  private typealias Archives = ArchiveSourceTests

  /// A truncation between two members looks like the end of the archive, except for the missing
  /// zeros. One block of them is sufficient, as for tar.
  @Test(arguments: ["cat", "gzip", "xz"]) func aTarWithoutEndMarkIsDamaged(filter: String) throws {
    let directory = try TemporaryDirectory("archive")
    // A content of zeros is not an end-of-archive marker.
    let files: [(String, [UInt8])] = [("a", [1]), ("b", [UInt8](repeating: 0, count: 2048))]
    let members = PaxArchive.bytes(files, isEnded: false)
    for count in [0, 512, 1024] {
      try directory.write(members + [UInt8](repeating: 0, count: count), at: "tar")
      try Archives.run("\(filter) < tar > z", in: directory)
      let (report, fixture) = try Archives.importing("z", of: directory)
      #expect(report.isComplete == (count > 0), "\(count): \(report)")
      #expect((report.damage?.reason.contains("no end mark") ?? false) == (count == 0))
      #expect(report.damage?.isSuspect != true && report.skipped.entryCount == 0)
      #expect(try fixture.bytes("folders/x/b", report).count == 2048)
    }
  }

  /// Of two archives in one file, only the first is read, as tar does, so the file counts as
  /// damaged.
  @Test(arguments: ["cat", "gzip", "bzip2", "xz", "zstd"], [false, true])
  func anArchiveAfterTheEndMarkerIsReported(filter: String, isFar: Bool) throws {
    let directory = try TemporaryDirectory("archive")
    // The end of the last record is usually filled with zeros.
    let zeros = [UInt8](repeating: 0, count: isFar ? 1368 * 512 : 0)
    try directory.write(PaxArchive.bytes([("a", [1])]) + zeros, at: "first")
    try directory.write(PaxArchive.bytes([("b", [2])]), at: "second")
    try Archives.run(
      "(\(filter) < first; \(filter) < second) > z; \(filter) < first > one", in: directory)
    let (whole, _) = try Archives.importing("one", of: directory)
    #expect(whole.isComplete, "\(whole)")
    let (report, fixture) = try Archives.importing("z", of: directory)
    #expect(report.damage?.reason.contains("another archive follows") == true, "\(report)")
    #expect(report.damage?.isSuspect == false)
    #expect(try fixture.bytes("folders/x/a", report) == [1])
    // Old programs filled the last record with uninitialized memory.
    try directory.write([UInt8](repeating: 9, count: 5000), at: "second")
    try Archives.run("cat first second > other", in: directory)
    let (other, _) = try Archives.importing("other", of: directory)
    #expect(other.isComplete, "\(other)")
  }

  /// Without its central directory, a zip archive is read as a stream: its links become files, and
  /// its modes are missing.
  @Test(arguments: [1, 22, 40]) func aZipWithoutDirectoryIsDamaged(count: Int) throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write("content", at: "a")
    try Archives.run(
      "ln -s a l; zip -qy z.zip a l; head -c -\(count) z.zip > cut.zip", in: directory)
    let (whole, _) = try Archives.importing("z.zip", of: directory)
    #expect(whole.isComplete, "\(whole)")
    for format in [ArchiveReader.Format.zip, .any] {
      let (report, fixture) = try Archives.importing("cut.zip", of: directory, format: format)
      #expect(report.damage?.reason.contains("directory at its end is missing") == true)
      #expect(report.damage?.isSuspect == false)
      #expect(try fixture.text("folders/x/a", report) == "content")
    }
  }

  /// A zip archive is read through the directory at its end: another one before it counts as
  /// damage, as after a tar archive. The stub of a self-extracting archive is allowed, and
  /// reported.
  @Test(arguments: [ArchiveReader.Format.zip, .any])
  func dataBeforeAZipIsReported(format: ArchiveReader.Format) throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write("one", at: "a")
    try directory.write("two", at: "b")
    try directory.write([UInt8](repeating: 7, count: 90_000), at: "program")
    try Archives.run(
      "zip -q a.zip a; zip -qz b.zip b < a; cat a.zip b.zip > two; cat program b.zip > self; "
        + "cat program a.zip b.zip > both; stat -c %s a.zip > size", in: directory)
    let text = String(decoding: try directory.read("size"), as: UTF8.self)
    let size = try #require(Int(text.prefix { $0.isNumber }))
    for (name, count) in [("two", size), ("both", 90_000 + size)] {
      let (report, fixture) = try Archives.importing(
        ByteString(name), of: directory, format: format)
      #expect(
        report.damage?.reason
          == "its first \(count) bytes are another archive, and the entries of that are missing")
      #expect(report.damage?.isSuspect == false)
      #expect(try fixture.text("folders/x/b", report) == "two")
    }
    let (report, fixture) = try Archives.importing("self", of: directory, format: format)
    #expect(report.isComplete && report.skipped.propertyCount == 1, "\(report)")
    #expect(
      report.skipped.listed.first?.reason
        == "90000 bytes precede the archive, and were not imported")
    #expect(report.snapshot.snapshot.warnings.count == 1)
    #expect(try fixture.text("folders/x/b", report) == "two")
    let (plain, _) = try Archives.importing("b.zip", of: directory, format: format)
    #expect(plain.isComplete && plain.skipped.isEmpty, "\(plain)")
  }

  /// libarchive takes the name before the content, and not that of the directory.
  @Test func aZipEntryWithTwoNamesIsNamed() throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write("content", at: "first")
    try directory.write("content", at: "second")
    try Archives.run("zip -q z.zip first second", in: directory)
    let (whole, _) = try Archives.importing("z.zip", of: directory)
    #expect(whole.isComplete && whole.skipped.isEmpty, "\(whole)")
    var bytes = try directory.read("z.zip")
    let place = try #require(
      bytes.indices.first { bytes[$0...].starts(with: Array("first".utf8)) })
    bytes[place] = UInt8(ascii: "F")
    try directory.write(bytes, at: "z.zip")
    let (report, fixture) = try Archives.importing("z.zip", of: directory)
    #expect(report.skipped.listed.map(\.path) == ["First"] && report.damage == nil)
    #expect(!report.isComplete)
    #expect(
      report.skipped.listed.first?.reason.contains("another name for this entry") == true)
    #expect(try fixture.text("folders/x/First", report) == "content")
  }

  /// Info-ZIP writes a name with the byte 7F again in an extra field, with bytes that are no UTF-8.
  @Test func aNameThatInfoZIPWritesInAnInvalidFieldStays() throws {
    let directory = try TemporaryDirectory("archive")
    try Archives.run(
      "mkdir tree; printf text > $'tree/a\\177b'; LC_ALL=C zip -qr a.zip tree", in: directory)
    let (report, fixture) = try Archives.importing("a.zip", of: directory)
    #expect(report.isComplete && report.skipped.isEmpty, "\(report.skipped.listed)")
    #expect(try fixture.text("folders/x/tree/a\u{7f}b", report) == "text")
  }

  /// From a stream, the first of two archives is read.
  @Test(arguments: [ArchiveReader.Format.zip, .any])
  func anArchiveAfterAZipInAStreamIsReported(format: ArchiveReader.Format) throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write("one", at: "a")
    try directory.write("two", at: "b")
    try Archives.run(
      "zip -qz a.zip a < b; zip -q b.zip b; cat a.zip b.zip > two; mkfifo pipe", in: directory)
    for (name, isFollowed) in [("a.zip", false), ("two", true)] {
      let bytes = Data(try directory.read(ByteString(name)))
      let pipe = URL(fileURLWithPath: "\(directory.path)/pipe")
      let writer = try Workers(count: 1, capacity: 1, name: "writer")
      // The writer waits for the reader.
      writer.submit { try? FileHandle(forWritingTo: pipe).write(contentsOf: bytes) }
      defer { writer.finish() }
      let (report, fixture) = try Archives.importing("pipe", of: directory, format: format)
      let isNamed = report.damage?.reason.contains("another archive follows") ?? false
      #expect(isNamed == isFollowed, "\(name): \(report)")
      #expect(try fixture.text("folders/x/a", report) == "one")
    }
  }

  /// The message of liblzma, "No progress is possible", would not help a user.
  @Test func aTruncatedLzmaIsReportedAsTruncated() throws {
    let directory = try TemporaryDirectory("archive")
    var random = Seeded(7)
    let files = ["a", "b", "c"].map { ($0, random.bytes(200_000)) }
    try directory.write(PaxArchive.bytes(files), at: "tar")
    try Archives.run("xz --format=lzma < tar | head -c 500000 > z", in: directory)
    let (report, fixture) = try Archives.importing("z", of: directory)
    #expect(report.damage?.reason == "its lzma data is truncated", "\(report)")
    #expect(report.damage?.isSuspect == false)
    #expect(report.skipped.listed.map(\.path) == ["c"])
    #expect(try fixture.bytes("folders/x/a", report) == files[0].1)
  }

  /// An incremental archive has only changed files, so a snapshot of it is not one of the whole
  /// directory.
  @Test(arguments: ["gnu", "posix"]) func anIncrementalArchiveIsNamed(format: String) throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write("old", at: "tree/old")
    let tar = "tar --format=\(format) -g list -cf"
    try Archives.run(
      "\(tar) full tree; printf new > tree/new; \(tar) next tree", in: directory)
    let (full, _) = try Archives.importing("full", of: directory)
    #expect(full.isComplete && full.skipped.isEmpty, "\(full.skipped.listed)")
    let (next, fixture) = try Archives.importing("next", of: directory)
    #expect(next.isComplete && next.skipped.propertyCount == 1, "\(next.skipped.listed)")
    #expect(next.skipped.listed.first?.path == "tree/", "\(next.skipped.listed)")
    #expect(next.skipped.listed.first?.reason.contains("incremental archive of GNU tar") == true)
    #expect(next.snapshot.snapshot.warnings.count == 1)
    #expect(try fixture.text("folders/x/tree/new", next) == "new")
    #expect(try fixture.entries(next)["folders/x/tree/old"] == nil)
  }
}
