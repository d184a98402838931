package import Foundation
package import SystemIO

/// Runs another program and returns its result.
///
/// The output goes to files, so that no amount of it can block; the input is empty unless given.
/// Signals that the test runner ignores, such as SIGTERM and SIGINT, have their default effect on
/// the program and its children: otherwise, a daemon that it tries to end would keep running.
package enum Program {
  /// The exit status and output of a program.
  package struct Outcome: Sendable {
    /// The exit code, or the negated number of the signal that ended the program.
    package let code: Int32
    package let standardOutput: [UInt8]
    package let standardError: [UInt8]

    /// The standard output as text; bytes that are not UTF-8 become U+FFFD.
    package var output: String { String(decoding: standardOutput, as: UTF8.self) }
    /// The standard error as text.
    package var errors: String { String(decoding: standardError, as: UTF8.self) }
  }

  /// A program that was not found or did not end in time.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String

    /// Creates a failure with a message.
    package init(description: String) { self.description = description }
  }

  /// Runs a program and waits until it ends, for at most `timeout` seconds, which only guard
  /// against a hanging program: a busy machine may be slow.
  ///
  /// `name` is a path if it has a slash; otherwise it is looked up in `PATH`. `environment` is
  /// added to this process's environment, or replaces it if `cleanEnvironment` is set.
  package static func run(
    _ name: String, _ arguments: [String] = [], environment: [String: String] = [:],
    cleanEnvironment: Bool = false, in directory: URL? = nil, input: [UInt8] = [],
    timeout: Double = 1800
  ) throws -> Outcome {
    let scratch = try TemporaryDirectory("program", inMemory: true)
    let process = Process()
    process.executableURL = try locate("env")
    process.arguments = ["--default-signal", try locate(name).path] + arguments
    let inherited = cleanEnvironment ? [:] : ProcessInfo.processInfo.environment
    process.environment = inherited.merging(environment) { $1 }
    process.currentDirectoryURL = directory
    try scratch.write(input, at: "in")
    let words = try FileHandle(forReadingFrom: scratch.url.appendingPathComponent("in"))
    let output = try handle(scratch, "out")
    let errors = try handle(scratch, "err")
    // Foundation keeps some processes, and their files, forever.
    defer { for file in [words, output, errors] { try? file.close() } }
    process.standardInput = words
    process.standardOutput = output
    process.standardError = errors
    try wait(for: process, timeout: timeout)
    let code = process.terminationStatus
    return try Outcome(
      code: process.terminationReason == .uncaughtSignal ? -code : code,
      standardOutput: scratch.read("out"), standardError: scratch.read("err"))
  }

  /// Whether `PATH` has a program of that name.
  package static func exists(_ name: String) -> Bool { (try? locate(name)) != nil }

  private static func wait(for process: Process, timeout: Double) throws {
    let ended = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in ended.signal() }
    try process.run()
    if ended.wait(timeout: .now() + timeout) == .success { return }
    kill(process.processIdentifier, SIGKILL)
    ended.wait()
    let shown = (process.arguments ?? []).dropFirst().joined(separator: " ")
    throw Failure(description: "not ended after \(timeout) s: \(shown)")
  }

  private static func handle(_ scratch: TemporaryDirectory, _ name: String) throws -> FileHandle {
    let url = scratch.url.appendingPathComponent(name)
    try Data().write(to: url)
    return try FileHandle(forWritingTo: url)
  }

  private static func locate(_ name: String) throws -> URL {
    if name.contains("/") { return URL(fileURLWithPath: name) }
    // The system's programs come first, because a wrapper in a user's PATH may start several shells
    // each time.
    let directories = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let system = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"]
    for directory in system + directories.components(separatedBy: ":") {
      let url = URL(fileURLWithPath: directory).appendingPathComponent(name)
      if FileManager.default.isExecutableFile(atPath: url.path) { return url }
    }
    throw Failure(description: "no program '\(name)' in \(directories)")
  }
}

extension Program {
  /// A program that runs until it is ended.
  package final class Running {
    private let process: Process

    fileprivate init(_ process: Process) { self.process = process }

    /// Ends the program, and waits until it has ended.
    package func end() {
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
  }

  /// Starts a program with a file as its standard input, without waiting for its end.
  package static func start(
    _ name: String, _ arguments: [String], standardInput: ByteString
  ) throws -> Running {
    let process = Process()
    process.executableURL = try locate(name)
    process.arguments = arguments
    process.standardInput = try FileHandle(
      forReadingFrom: URL(
        fileURLWithPath: String(decoding: standardInput.bytes, as: UTF8.self)))
    try process.run()
    return Running(process)
  }
}
