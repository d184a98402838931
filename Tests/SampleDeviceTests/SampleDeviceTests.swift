import Foundation
import SampleDevice
import SystemIO
import TestSupport
import Testing

@Suite("The sample device")
struct SampleDeviceTests {
  @Test("is always the same, and matches the golden listing", arguments: [0, 1])
  func theSampleIsDeterministic(day: Int) throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"), day: day)
    _ = try SampleDevice.make(at: scratch.path("b/c"), day: day)
    let listing = try TreeListing(scratch.path("a")).lines
    #expect(try TreeListing(scratch.path("b/c")).lines == listing)
    try Golden.compare(listing, with: "day-\(day).txt")
  }

  @Test("does not depend on the umask", arguments: [0o000, 0o077, 0o777])
  func theSampleDoesNotDependOnTheUmask(mask: mode_t) async throws {
    // The umask applies to the whole process, so it is set in a separate process, for a user
    // without privileges.
    let scratch = try TemporaryDirectory("sample")
    try scratch.directory.setPermissions(0o777)
    let path = scratch.path("sample").description
    await #expect(processExitsWith: .success) { [path = path as String, mask = mask as mode_t] in
      umask(mask)
      try Unprivileged.run { _ = try SampleDevice.make(at: ByteString(path)) }
    }
    _ = try SampleDevice.make(at: scratch.path("other"))
    let made = try TreeListing(scratch.path("sample")).lines
    #expect(try made == TreeListing(scratch.path("other")).lines)
  }

  @Test("is small, and its report has the right size")
  func theSampleIsSmall() throws {
    let scratch = try TemporaryDirectory("sample")
    let report = try SampleDevice.make(at: scratch.path("a"), day: SampleDevice.lastDay)
    let listing = try TreeListing(scratch.path("a"))
    #expect(report.bytes == listing.bytes)
    #expect(report.entries == listing.lines.count - 1)
    #expect(report.removed == 0)
    let first = try SampleDevice.make(at: scratch.path("b"))
    #expect(first.bytes < 3_000_000)
    #expect(try TreeListing(scratch.path("b")).files < 300)
  }

  @Test("has unusual names, links and holes")
  func theSampleHasUnusualNamesLinksAndHoles() throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"))
    let data = scratch.path("a/data/Containers/Data/Application")
    let notebook = try Directory.open(path: data.appending("D23F0824-128B-4F33-8C5C-7FD0A6A3A450"))
    let documents = try notebook.directory("Documents")
    let names = try documents.directory("Notes").names()
    let invalid = ByteString("Scan ".utf8 + [0xff, 0xfe] + ".txt".utf8)
    #expect(names.contains("Caf\u{e9}.md") && names.contains("Cafe\u{301}.md"))
    #expect(names.contains("Two\nlines.md") && names.contains(invalid))
    #expect(try documents.directory("Empty folder").isEmpty())
    let own: ByteString =
      "/private/var/mobile/Containers/Data/Application/D23F0824-128B-4F33-8C5C-7FD0A6A3A450"
    #expect(try documents.target(of: "Latest.md") == own.appending("Documents/Notes/Recipes.md"))
    let darkroom = try Directory.open(path: data.appending("6B0D549B-6F03-475A-9600-A35A099950D8"))
    let albums = try darkroom.directory("Documents").directory("Albums")
    #expect(try albums.directory("Trip").status("IMG_0003.PNG").links == 3)
    let map = try darkroom.directory("Library").directory("Application Support").status("World.map")
    #expect(map.size == 1_048_576)
    #expect(map.allocated < 65_536)
  }

  @Test("has valid pictures", .enabled(if: Program.exists("python3")))
  func theSampleHasValidPictures() throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"))
    let picture =
      scratch.path("a").description
      + "/data/Containers/Data/Application/6B0D549B-6F03-475A-9600-A35A099950D8"
      + "/Documents/DCIM/100APPLE/IMG_0001.PNG"
    let program = """
      import struct, sys, zlib
      data, at, pixels = open(sys.argv[1], "rb").read(), 8, b""
      assert data[:8] == b"\\x89PNG\\r\\n\\x1a\\n"
      while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR": width, height = struct.unpack(">II", body[:8])
        if kind == b"IDAT": pixels += body
        at += 12 + size
      assert len(zlib.decompress(pixels)) == height * (3 * width + 1)
      print(width, height)
      """
    let result = try Program.run("python3", ["-c", program, picture])
    #expect(result.output == "76 60\n")
    #expect(result.errors == "")
  }
}

/// Listings that were checked once and must not change.
enum Golden {
  private static let directory = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().appendingPathComponent("Golden")

  /// Compares lines with a golden file. With `SANDBOXCTL_RECORD=1` it is rewritten, and the test
  /// fails anyway, so that it is not recorded by accident.
  static func compare(_ lines: [String], with name: String) throws {
    let file = directory.appendingPathComponent(name)
    if ProcessInfo.processInfo.environment["SANDBOXCTL_RECORD"] == "1" {
      try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: file)
      Issue.record("\(name) is recorded: check the difference, and run the tests again")
      return
    }
    let golden = String(decoding: try Data(contentsOf: file), as: UTF8.self)
    let expected = golden.split(separator: "\n").map(String.init)
    for line in Set(expected).symmetricDifference(lines).sorted().prefix(20) {
      Issue.record("\(name): only in one of the listings: \(line)")
    }
    #expect(lines.count == expected.count)
  }
}
