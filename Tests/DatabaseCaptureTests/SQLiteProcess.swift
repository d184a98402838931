import Foundation
import TestSupport

/// A program that uses a database while a test runs, and ends on request.
final class SQLiteProcess {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  /// Starts `python3` with the arguments, and waits until it has written a line.
  init(_ arguments: [String]) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3"] + arguments
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    try expectLine()
  }

  /// Starts a connection that runs the given statements, and others later on request.
  convenience init(statements: [String], on path: String) throws {
    let program = """
      import sqlite3, sys
      connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
      print("ready", flush=True)
      for line in sys.stdin:
        try:
          print(connection.execute(line).fetchall(), flush=True)
        except sqlite3.OperationalError as error:
          print(error, flush=True)
      """
    try self.init(["-c", program, path])
    for statement in statements { try execute(statement) }
  }

  /// Runs a statement, and returns the line with its result.
  @discardableResult
  func execute(_ statement: String) throws -> String {
    try input.fileHandleForWriting.write(contentsOf: Data((statement + "\n").utf8))
    return try expectLine()
  }

  /// Closes the program's input. Returns its last line of output, and its exit code.
  func finish() throws -> (line: String, code: Int32) {
    try input.fileHandleForWriting.close()
    let line = try expectLine()
    process.waitUntilExit()
    return (line, process.terminationStatus)
  }

  @discardableResult
  private func expectLine() throws -> String {
    var line: [UInt8] = []
    while true {
      let byte = output.fileHandleForReading.readData(ofLength: 1)
      guard let first = byte.first else {
        throw Program.Failure(description: "it ended: \(String(decoding: line, as: UTF8.self))")
      }
      if first == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
      line.append(first)
    }
  }

  /// Closes the program's input, and waits for its end. Returns its exit code.
  @discardableResult
  func end() -> Int32 {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
    return process.terminationStatus
  }

  deinit { if process.isRunning { end() } }
}
