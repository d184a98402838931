import Foundation
import SystemIO
import TestSupport

/// A running `sandboxctl mount`. It is detached and ended when this value is released, so that no
/// mount survives a test.
final class MountedView {
  private let process = Process()
  private let cli: CommandLine
  /// The directory that it is mounted on, and the files of its output.
  let path: String
  let number: Int32

  /// Mounts a repository on a new directory, and waits until it is mounted.
  init(
    _ cli: CommandLine, _ arguments: String = "", on name: String = "view", repo: String = "repo",
    environment added: [String: String] = [:]
  ) throws {
    self.cli = cli
    path = cli.directory.string + "/" + name
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    let words =
      ["mount", name, "--repo", repo] + arguments.split(separator: " ").map(String.init)
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["--default-signal", CommandLine.program] + words
    process.environment = cli.environment.merging(added) { $1 }
    process.currentDirectoryURL = cli.directory.url
    process.standardInput = FileHandle.nullDevice
    for file: ByteString in ["out", "err"] { try cli.directory.write([], at: file) }
    process.standardOutput = FileHandle(forWritingAtPath: cli.directory.string + "/out")
    process.standardError = FileHandle(forWritingAtPath: cli.directory.string + "/err")
    try process.run()
    number = process.processIdentifier
    for _ in 0..<600 where !isMounted && process.isRunning { Host.pause(seconds: 0.02) }
    guard isMounted else { throw Program.Failure(description: "not mounted: \(errors)") }
    // The line is printed after the mount.
    for _ in 0..<600 where output.isEmpty && process.isRunning { Host.pause(seconds: 0.02) }
  }

  deinit {
    if process.isRunning { kill(number, SIGKILL) }
    detach()
  }

  private func detach() {
    _ = try? Program.run("umount", ["-l", path])
    if isMounted { _ = try? Program.run("fusermount3", ["-u", "-z", path]) }
  }

  /// Whether something is mounted on the directory.
  var isMounted: Bool {
    let mounts = (try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)) ?? ""
    return mounts.contains(" \(path) fuse.sandboxctl ")
  }

  /// The path of a name in the view.
  func callAsFunction(_ name: String) -> String { path + "/" + name }

  var output: String { text("out") }
  var errors: String { text("err") }

  private func text(_ name: String) -> String {
    let bytes = FileManager.default.contents(atPath: cli.directory.string + "/" + name) ?? Data()
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Sends a signal and returns the exit status of the program.
  func end(by signal: Int32) -> Int32 {
    kill(number, signal)
    return status()
  }

  /// Waits until the program ends, for at most a minute, and returns its exit status.
  func status() -> Int32 {
    for _ in 0..<3000 where process.isRunning { Host.pause(seconds: 0.02) }
    return process.isRunning ? -1 : process.terminationStatus
  }

  /// Unmounts with the system's program and returns the exit status of the program.
  func unmount() throws -> Int32 {
    if Host.userID == 0 {
      _ = try Program.run("umount", [path])
    } else {
      _ = try Program.run("fusermount3", ["-u", path])
    }
    return status()
  }

  /// Whether file systems can be mounted here; prints that the test is skipped if not.
  static let isPossible: Bool = {
    let device = open("/dev/fuse", O_RDWR | O_CLOEXEC)
    if device >= 0 {
      close(device)
      if Host.userID == 0 { return (try? Mount.isPermitted()) ?? false }
      if Program.exists("fusermount3") { return true }
    }
    print("skipped: /dev/fuse cannot be opened, or there is no fusermount3")
    return false
  }()
}
