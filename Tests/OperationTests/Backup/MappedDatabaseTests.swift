import ArchiveStore
import Foundation
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// Databases to which programs write through mapped memory.
@Suite(.spreadScans) struct MappedDatabaseTests {
  /// A program that maps a file, and writes a letter to it for each line that it reads.
  private static let writer = """
    import mmap, sys
    file = open(sys.argv[1], "r+b")
    memory = mmap.mmap(file.fileno(), 0)
    for line in sys.stdin:
        memory[0:1] = line[:1].encode()
        print(flush=True)
    """

  private final class Writer {
    private let process = Process()
    private let (input, output) = (Pipe(), Pipe())

    init(_ path: String) throws {
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = ["python3", "-c", MappedDatabaseTests.writer, path]
      process.standardInput = input
      process.standardOutput = output
      try process.run()
    }

    /// Writes a letter to the memory, and returns once it is there.
    func write(_ letter: String) throws {
      try input.fileHandleForWriting.write(contentsOf: Data("\(letter)\n".utf8))
      _ = try output.fileHandleForReading.read(upToCount: 1)
    }

    deinit {
      try? input.fileHandleForWriting.close()
      process.waitUntilExit()
    }
  }

  private enum Kind: CaseIterable {
    case realm
    case environment
    case file

    var names: [ByteString] {
      switch self {
      case .realm: ["default.realm", "default.realm.lock"]
      case .environment: ["data.mdb", "lock.mdb"]
      case .file: ["notes.mdb", "notes.mdb-lock"]
      }
    }
  }

  /// A write to a page that was already modified does not change the modification time, unless the
  /// first backup has written the page to the disk. According to the backup's clock, the file has
  /// not been changed for an hour, after which its time is trusted.
  @Test(arguments: Kind.allCases)
  private func aWriteToMappedMemoryAfterReadingShows(_ kind: Kind) throws {
    let fixture = try Fixture()
    let path = ByteString("tree").appending(kind.names[0])
    try fixture.directory.write([UInt8](repeating: 0, count: 8192), at: path)
    try fixture.directory.write("lock", at: ByteString("tree").appending(kind.names[1]))
    let writer = try Writer(fixture.directory.string + "/" + path.description)
    try writer.write("a")
    #expect(try fixture.backup(keeping: "cache").isComplete)
    try writer.write("b")
    let report = try fixture.backup(keeping: "cache")
    #expect(report.isComplete && report.warnings.isEmpty)
    _ = try fixture.restore(report)
    let back = try fixture.directory.read(ByteString("back").appending(kind.names[0]))
    #expect(back.first == UInt8(ascii: "b"))
  }
}
