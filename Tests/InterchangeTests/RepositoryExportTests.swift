import ArchiveStore
import Interchange
import SystemIO
import TestSupport
import Testing

/// The files of an export of a whole repository.
struct RepositoryExportTests {
  /// An incomplete archive is not treated as a complete one: the next export tries again.
  @Test func anIncompleteArchiveIsReplacedByAWholeOne() throws {
    let fixture = try Fixture()
    let stored = try fixture.run([.file("a", "a")]).snapshot
    let time = stored.snapshot.time
    let directory = try TemporaryDirectory("export")
    let export = try RepositoryExport(into: directory.path("out"), compression: .none)
    for isComplete in [false, false, true] {
      let outcome = try export.write(stored) { _ in isComplete }
      #expect(outcome != .present)
      let names = try Directory.open(path: directory.path("out")).names()
      #expect(names == [export.name(of: stored.id, at: time, isComplete: isComplete)])
      #expect(try export.hasArchive(of: stored.id, at: time) == isComplete)
    }
    let again = try export.write(stored) { _ in false }
    #expect(again == .present)
  }

  /// An export does not remove the temporary files of a running one.
  @Test func twoExportsIntoADirectoryExcludeEachOther() throws {
    let directory = try TemporaryDirectory("export")
    let part: ByteString = "out/.sandboxctl-0123456789abcdef.tmp"
    do {
      let first = try RepositoryExport(into: directory.path("out"), compression: .none)
      try directory.write("part", at: part)
      let error = #expect(throws: InterchangeError.self) {
        try RepositoryExport(into: directory.path("out"), compression: .zstd)
      }
      #expect(error?.reason == "another export to it is running")
      #expect(try directory.read(part) == Array("part".utf8))
      withExtendedLifetime(first) {}
    }
    _ = try RepositoryExport(into: directory.path("out"), compression: .none)
    let names = try Directory.open(path: directory.path("out")).names()
    #expect(names.isEmpty)
  }

  /// The file of a running export stays, whatever other programs write into the directory.
  @Test func anotherExportKeepsTheFileOfARunningOne() throws {
    let directory = try TemporaryDirectory("export")
    let bytes: [UInt8] = [1, 2, 3]
    let first = try OutputFile(path: directory.path("a.tar"))
    try first.write(bytes.span)
    let abandoned: ByteString = ".sandboxctl-output-0123456789abcdef.tmp"
    try directory.write("part", at: abandoned)
    let second = try OutputFile(path: directory.path("b.tar"))
    _ = try RepositoryExport(into: directory.path(""), compression: .none)
    #expect(try directory.directory.statusIfPresent(abandoned) == nil)
    try first.commit()
    try second.commit()
    #expect(try directory.read("a.tar") == bytes)
    #expect(try directory.directory.names() == ["a.tar", "b.tar"])
  }

  /// A file that has appeared in the meantime is not replaced, and no temporary file stays.
  @Test func aFileThatAppearsIsNotReplaced() throws {
    let directory = try TemporaryDirectory("export")
    let output = try OutputFile(path: directory.path("a.tar"))
    let bytes: [UInt8] = [1, 2, 3]
    try output.write(bytes.span)
    try directory.write("precious", at: "a.tar")
    #expect(throws: InterchangeError.self) { try output.commit() }
    #expect(try directory.read("a.tar") == Array("precious".utf8))
    let names = try Directory.open(path: directory.path("")).names()
    #expect(names == ["a.tar"])
  }
}
