import Foundation
import SystemIO
import TestSupport
import Testing

/// Finding the processes that use a file.
struct ProcessesTests {
  /// A `cat` that ends when its standard input is closed, which this object keeps open. The program
  /// is running once it has returned a line; before that, the process is still the shell.
  private final class Holder {
    let running = Process()
    private let input = Pipe()

    init(_ script: String, _ path: String, in directory: TemporaryDirectory) throws {
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

  /// Returns the processes that use files. Repeats the search until the result is right, for at
  /// most ten minutes: a process that another test is just starting has copies of this process's
  /// descriptors until its program begins.
  private func uses(
    _ ids: [FileIdentity], until isRight: ([Processes.Use]) -> Bool
  ) throws -> [Processes.Use] {
    let end = Host.monotonicSeconds() + 600
    while true {
      let uses = try Processes.using { ids.contains($0) }.uses
      if isRight(uses) || Host.monotonicSeconds() > end { return uses }
      Host.pause(seconds: 0.001)
    }
  }

  @Test(arguments: ["exec 5<\"$1/file\"", "cd \"$1\""])
  func anOpenFileAndAWorkingDirectoryAreFound(_ script: String) throws {
    let directory = try TemporaryDirectory()
    try directory.write("x", at: "file")
    let ids = [
      try directory.directory.status().identity, try directory.directory.status("file").identity,
    ]
    let holder = try Holder(script, directory.string, in: directory)
    let number = holder.running.processIdentifier
    let found = try uses(ids) { $0.map(\.process) == [number] }
    #expect(found.map(\.process) == [number])
    #expect(found.first?.name == "cat")
    #expect(found.first?.file.isWithin(directory.path) == true)
    holder.end()
    let rest = try uses(ids) { $0.isEmpty }
    #expect(rest.isEmpty)
  }

  @Test func thisProcessAndItsParentsAreExcluded() throws {
    let directory = try TemporaryDirectory()
    try directory.write("x", at: "file")
    let file = try directory.directory.file("file")
    let found = try uses([file.status().identity]) { $0.isEmpty }
    #expect(found.isEmpty)
    withExtendedLifetime(file) {}
  }

  /// A kernel thread has no open files, so it is not reported as unknown.
  @Test(arguments: [(2_129_984, true), (4_194_560, false)])
  func kernelThreadsAreNotReportedAsUnknown(flags: Int, isOne: Bool) throws {
    let directory = try TemporaryDirectory("proc")
    try directory.write("a (b) c\n", at: "proc/7/comm")
    try directory.write("Name:\tx\nUid:\t0\t0\t0\t0\n", at: "proc/7/status")
    try directory.write("7 (a (b) c) S 2 0 0 0 -1 \(flags) 0 0\n", at: "proc/7/stat")
    // Its working directory cannot be read.
    try FileManager.default.createSymbolicLink(
      atPath: directory.string + "/proc/7/cwd", withDestinationPath: "cwd")
    let found = try Processes.using(in: directory.path("proc")) { _ in true }
    #expect(found.unknown.map(\.number) == (isOne ? [] : [7]))
    #expect(found.uses.isEmpty)
  }

  @Test func aProcessThatStillRunsIsFound() throws {
    let start = try #require(Processes.startTime(of: Host.processID))
    #expect(Processes.presence(of: Host.processID, startedAt: start) == .running)
    #expect(Processes.numbering() != nil && Processes.numbering() == Processes.numbering())
  }

  /// The process number now belongs to another process or to none.
  @Test func aProcessThatEndedIsNotFound() throws {
    let start = try #require(Processes.startTime(of: Host.processID))
    #expect(Processes.presence(of: Host.processID, startedAt: start - 1) == .ended)
    #expect(Processes.presence(of: .max, startedAt: start) == .ended)
    #expect(Processes.presence(of: 0, startedAt: start) == .unknown)
  }

  /// The process is hidden from other users, or is a zombie.
  @Test(arguments: [("S", 1, Processes.Presence.running), ("Z", 1, .ended), ("Z", 3, .running)])
  func theStateIsRead(state: String, threads: Int, presence: Processes.Presence) throws {
    let directory = try TemporaryDirectory("proc")
    let zeros = String(repeating: " 0", count: 16)
    try directory.write("7 (a (b) c) \(state)\(zeros) \(threads) 0 4711 0\n", at: "proc/7/stat")
    let proc = directory.path("proc")
    #expect(Processes.presence(of: 7, startedAt: 4711, in: proc) == presence)
    #expect(Processes.presence(of: 7, startedAt: 4710, in: proc) == .ended)
    #expect(Processes.presence(of: Host.processID, startedAt: 1, in: proc) == .unknown)
    // This directory does not show the current process.
    #expect(Processes.numbering(in: proc) == nil)
  }
}
