import Foundation
import SystemIO
import TestSupport
import Testing

/// A kind of failure, injected at one call after another.
struct Fault: CustomStringConvertible, Sendable {
  enum Persistence {
    case once
    case fromThenOn
  }

  let call: String
  let error: String
  let persistence: Persistence
  /// The text of the error message.
  let reason: String

  init(_ call: String, _ error: String, _ persistence: Persistence, _ reason: String) {
    (self.call, self.error, self.persistence, self.reason) = (call, error, persistence, reason)
  }

  var description: String { "\(call) \(error) \(persistence)" }

  /// Calls `body` for the first, second, third … call on some paths, until it returns that there
  /// was none; `make test` for the first and a sample of the others.
  func forEachCall(on paths: [String] = [], _ body: (Int, Strace) throws -> Bool) throws {
    for number in Sampling.steps(Sampling.wider(4), "\(self)").prefix(while: { $0 <= 200 }) {
      let when = persistence == .once ? "\(number)" : "\(number)+"
      if try !body(number, Strace(call, error, when, on: paths)) {
        #expect(number > 1, "\(self) was never made")
        return
      }
    }
    Issue.record("\(self) does not end")
  }
}

/// strace, which runs another program and makes one of its calls fail.
struct Strace {
  private let directory: TemporaryDirectory
  private let injection: String?
  private let calls: String
  private let paths: [String]

  /// Whether processes may be traced on this machine.
  static let isPermitted: Bool = {
    let outcome = try? Program.run("strace", ["-qq", "-e", "trace=none", "true"])
    if outcome?.code == 0 { return true }
    print("skipped: strace is not there or may not trace")
    return false
  }()

  /// Makes the calls fail that `when` selects: `3` for the third, `3+` for all from the third on;
  /// with `paths`, only calls on these files and on entries of these directories.
  init(_ calls: String, _ error: String, _ when: String, on paths: [String] = []) throws {
    directory = try TemporaryDirectory("strace", inMemory: true)
    injection = "inject=\(calls):error=\(error):when=\(when)"
    self.calls = calls
    self.paths = paths
  }

  /// Kills the program at the n-th of the calls.
  init(_ calls: String, killingAt number: Int) throws {
    directory = try TemporaryDirectory("strace", inMemory: true)
    injection = "inject=\(calls):signal=KILL:when=\(number)"
    self.calls = calls
    paths = []
  }

  /// Sends a signal to the program at the first of the calls on these files, or on entries of these
  /// directories.
  init(_ calls: String, signalling signal: String, on paths: [String]) throws {
    directory = try TemporaryDirectory("strace", inMemory: true)
    injection = "inject=\(calls):signal=\(signal):when=1"
    self.calls = calls
    self.paths = paths
  }

  /// Only records the calls.
  init(recording calls: String) throws {
    directory = try TemporaryDirectory("strace", inMemory: true)
    (injection, self.calls, paths) = (nil, calls, [])
  }

  /// The arguments before the program's own.
  var command: [String] {
    ["strace", "-f", "-qq", "-o", directory.string + "/log", "-e", "trace=\(calls)"]
      + (injection.map { ["-e", $0] } ?? []) + paths.flatMap { ["-P", $0] }
  }

  /// Whether a call was made to fail.
  func didInject() throws -> Bool { try log().contains("(INJECTED)") }

  /// Whether a message of the program was made to fail, too. strace counts the calls of each thread
  /// separately, so the n-th call of the thread that reports another thread's failure can be that
  /// report.
  func didInjectIntoMessage() throws -> Bool {
    // The number of a thread that began to write a message and was interrupted by another.
    var began: Set<Substring> = []
    for line in try log().split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 1)
      guard words.count == 2 else { continue }
      // Short numbers are padded.
      let call = words[1].drop { $0 == " " }
      let isMessage =
        call.hasPrefix("write(2, ")
        || call.hasPrefix("<... write resumed>") && began.contains(words[0])
      if isMessage, line.hasSuffix("(INJECTED)") { return true }
      if isMessage { began.insert(words[0]) } else { began.remove(words[0]) }
    }
    return false
  }

  /// The text of the log.
  func log() throws -> String {
    String(decoding: try directory.read("log"), as: UTF8.self)
  }
}

extension Strace {
  /// A recorded call of a program.
  struct Call {
    let name: String
    /// The number among the thread's calls of this name, as an injection counts them.
    let number: Int
    let arguments: Substring
  }

  /// Returns the recorded calls in order.
  func recorded() throws -> [Call] {
    let wanted = Set(calls.split(separator: ","))
    var numbers: [String: Int] = [:]
    return try log().split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
      guard words.count == 2, let open = words[1].firstIndex(of: "(") else { return nil }
      let name = words[1][..<open].drop { $0 == " " }
      // strace also reports calls of a newer kernel that it does not know.
      guard wanted.contains(name) else { return nil }
      let thread = "\(words[0]) \(name)"
      numbers[thread, default: 0] += 1
      let rest = words[1][words[1].index(after: open)...]
      return Call(
        name: String(name), number: numbers[thread] ?? 0,
        arguments: rest[..<(rest.lastIndex(of: ")") ?? rest.endIndex)])
    }
  }
}
