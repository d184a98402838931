import ArchiveStore
import Interchange
import SystemIO
import TestSupport
import Testing

/// Extended attributes in archives written by other programs.
struct ArchiveAttributeTests {
  /// GNU tar encodes `=` and `%` in names; bsdtar encodes more characters, and writes two keys.
  @Test(arguments: ["tar --xattrs --xattrs-include=user.*", "bsdtar --format pax"])
  func namesOfAttributesAreThoseOfTheFile(program: String) throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write("text", at: "a")
    let names = ["user.50% é", "user.a=b", "user.c%3Dd", "user.e%25", "user.plain"]
    let set = names.map { "setfattr -n '\($0)' -v '\($0)' a" }.joined(separator: "; ")
    try ArchiveSourceTests.run("\(set); \(program) -cf tar a", in: directory)
    let (report, fixture) = try ArchiveSourceTests.importing("tar", of: directory)
    #expect(report.isComplete && report.skipped.isEmpty, "\(report.skipped.listed)")
    let entry = try #require(try fixture.entries(report)["folders/x/a"])
    #expect(entry.attributes.map(\.name) == names.map { ByteString($0) }, "\(entry.attributes)")
    #expect(
      entry.attributes.allSatisfy { $0.value == .inline(Array($0.name.bytes)) },
      "\(entry.attributes)")
  }
}
