import Foundation
import Synchronization
import SystemIO
import TestSupport

/// The program with an object store of the tests, and a directory `data` to back up.
struct S3CommandFixture {
  let cli: CommandLine
  let store: FaultStore

  init() throws {
    cli = try CommandLine()
    store = try FaultStore()
    for number in 0..<12 {
      try cli.directory.write("file \(number)", at: ByteString("data/d\(number % 3)/\(number)"))
    }
  }

  /// The keys that the program finds, and the location of the store.
  var environment: [String: String] {
    [
      "AWS_ACCESS_KEY_ID": "ACCESSKEYID", "AWS_SECRET_ACCESS_KEY": "TOPSECRETKEY",
      "AWS_ENDPOINT_URL_S3": store.endpoint,
    ]
  }

  /// Runs a command line.
  func run(_ line: String, environment more: [String: String] = [:]) throws -> Program.Outcome {
    try cli.run(Self.words(line), environment: environment.merging(more) { $1 })
  }

  /// Runs a command that must succeed and returns its output.
  func succeed(_ line: String) throws -> String {
    let outcome = try run(line)
    guard outcome.code == 0 else {
      throw Program.Failure(description: "'\(line)' ended with \(outcome.code): \(outcome.errors)")
    }
    return outcome.output
  }

  /// Backs up `data` to `s3://bucket/place`.
  func backUp() throws -> String {
    try succeed("backup --root data --layout folder --repo s3://bucket/place")
  }

  /// The ids of the snapshots, the oldest first.
  func snapshots() throws -> [String] {
    try succeed("snapshots --json --repo s3://bucket/place").split(separator: "\n")
      .compactMap { try CommandLine.object($0)["id"] as? String }
  }

  private static func words(_ line: String) -> [String] {
    line.split(separator: " ").map(String.init)
  }

  // MARK: - Programs that run meanwhile

  /// A program that runs in another thread.
  final class Run: Sendable {
    private let result = Mutex<Result<Program.Outcome, any Error>?>(nil)

    fileprivate init(_ body: @escaping @Sendable () throws -> Program.Outcome) {
      Thread.detachNewThread { [self] in
        let outcome = Result { try body() }
        result.withLock { $0 = outcome }
      }
    }

    /// Waits for the end of the program, for at most a minute.
    func outcome() throws -> Program.Outcome {
      let limit = Host.monotonicSeconds() + 60
      while Host.monotonicSeconds() < limit {
        if let result = result.withLock({ $0 }) { return try result.get() }
        Host.pause(seconds: 0.01)
      }
      throw Program.Failure(description: "the program does not end")
    }
  }

  /// Starts a command on `s3://bucket/place`, whose process ID is written to the file `pid`. It
  /// ends by itself after a minute.
  func start(_ line: String) -> Run {
    let (cli, environment) = (cli, environment)
    let words = Self.words(line) + ["--repo", "s3://bucket/place"]
    return Run {
      try cli.run(
        words,
        under: ["timeout", "-k", "1", "60", "bash", "-c", #"echo $$ > pid; exec "$0" "$@""#],
        environment: environment)
    }
  }

  /// Sends a signal to the started program.
  func signal(_ number: Int32) throws {
    let text = String(decoding: try cli.directory.read("pid"), as: UTF8.self)
    guard let process = Int32(text.dropLast()) else {
      throw Program.Failure(description: "'\(text)' is no process")
    }
    kill(process, number)
  }

  /// Waits until the store has received `count` requests of a method with a text in their target,
  /// for at most 30 seconds. An empty method is any.
  func awaitRequests(_ count: Int, _ method: String, _ text: String) throws {
    let limit = Host.monotonicSeconds() + 30
    while Host.monotonicSeconds() < limit {
      let found = try store.requests().count {
        (method.isEmpty || $0.method == method) && (text.isEmpty || $0.target.contains(text))
      }
      if found >= count { return }
      Host.pause(seconds: 0.01)
    }
    throw Program.Failure(description: "the store does not receive \(count) requests")
  }
}
