import Foundation

/// A program that ends when its standard input is closed: when this value is released, or when the
/// tests end.
package final class BoundProcess: Sendable {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  /// The first line of its standard output.
  package let firstLine: String

  /// Starts a program and waits for its first line.
  package init(_ name: String, _ arguments: [String], environment: [String: String] = [:]) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [name] + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    // Another program that starts meanwhile must not keep the pipe open.
    for end in [input.fileHandleForWriting, output.fileHandleForReading] {
      _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
    }
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    var line = Data()
    while !line.contains(0x0a) {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      line += more
    }
    firstLine = String(decoding: line.prefix { $0 != 0x0a }, as: UTF8.self)
  }

  /// Sends a line to its standard input, and returns the next line of its standard output; empty if
  /// it has ended. For use by one thread at a time.
  package func ask(_ line: String) throws -> String {
    try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
    var answer = Data()
    while answer.last != 0x0a {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      answer += more
    }
    return String(decoding: answer.dropLast(), as: UTF8.self)
  }

  deinit { end() }

  /// Ends the program, and waits until it has ended.
  package func end() {
    try? input.fileHandleForWriting.close()
    let limit = Date(timeIntervalSinceNow: 10)
    while process.isRunning, Date() < limit { usleep(5000) }
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
  }
}
