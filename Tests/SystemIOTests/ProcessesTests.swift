import Foundation
import SystemIO
import TestSupport
import Testing

/// Which processes use a file.
@Suite struct ProcessesTests {
  /// A `cat` that ends with its standard input, which this object holds open. It is there once it has
  /// given a line back: before, the process is still the shell that becomes it.
  private final class Holder {
    let running = Process()
    private let input = Pipe()

    init(_ script: String, _ path: String, in folder: TemporaryFolder) throws {
      let ready = Pipe()
      running.executableURL = URL(fileURLWithPath: "/bin/sh")
      running.arguments = ["-c", script + "; exec cat", "sh", path]
      running.currentDirectoryURL = URL(fileURLWithPath: "/")
      running.standardInput = input
      running.standardOutput = ready
      try running.run()
      try input.fileHandleForWriting.write(contentsOf: Data("ready\n".utf8))
      _ = ready.fileHandleForReading.availableData
    }

    func end() {
      try? input.fileHandleForWriting.close()
      running.waitUntilExit()
    }
  }

  @Test(arguments: ["exec 5<\"$1/file\"", "cd \"$1\""])
  func anOpenFileAndAWorkingFolderAreFound(_ script: String) throws {
    let folder = try TemporaryFolder()
    try folder.write("x", at: "file")
    let ids = [try folder.folder.status().identity, try folder.folder.status("file").identity]
    let holder = try Holder(script, folder.string, in: folder)
    let found = try Processes.using { ids.contains($0) }
    #expect(found.uses.map(\.process) == [holder.running.processIdentifier])
    #expect(found.uses.first?.name == "cat")
    #expect(found.uses.first?.file.isWithin(folder.path) == true)
    holder.end()
    #expect(try Processes.using { ids.contains($0) }.uses.isEmpty)
  }

  @Test func thisProcessAndWhatStartedItAreNotMeant() throws {
    let folder = try TemporaryFolder()
    try folder.write("x", at: "file")
    let file = try folder.folder.file("file")
    let identity = try file.status().identity
    #expect(try Processes.using { $0 == identity }.uses.isEmpty)
    withExtendedLifetime(file) {}
  }
}
