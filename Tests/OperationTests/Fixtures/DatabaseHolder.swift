import Foundation
import SystemIO
import TestSupport

/// A program that locks a database as SQLite does in exclusive mode. Without a journal on the disk,
/// it is unknown whether it is within a transaction.
final class DatabaseHolder {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  private static let program = """
    import fcntl, os, select, sys
    file = os.open(sys.argv[1], os.O_RDWR)
    fcntl.lockf(file, fcntl.LOCK_EX, 512, 0x40000000)
    print("ready", flush=True)
    pause = 0 if sys.argv[2] == "writes" else None
    while not select.select([0], [], [], pause)[0]: os.pwrite(file, os.urandom(8), 16)
    """

  /// Locks the database at an absolute path until `end`.
  ///
  /// - Parameter writes: whether it also writes to the database continuously.
  init(_ path: ByteString, writes: Bool) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "python3", "-c", Self.program, String(decoding: path.bytes, as: UTF8.self),
      writes ? "writes" : "waits",
    ]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    guard output.fileHandleForReading.readData(ofLength: 1).first == UInt8(ascii: "r") else {
      throw Program.Failure(description: "the program that holds the database has ended")
    }
  }

  func end() {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  deinit { if process.isRunning { end() } }
}
