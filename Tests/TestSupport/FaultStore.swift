import Foundation

/// A store of objects that answers as S3, whose requests fail as a test requires
/// (`RemoteStorageTests/Programs/store.py`). It ends with this value, and with the tests.
package final class FaultStore: Sendable {
  /// The port on 127.0.0.1.
  package let port: Int
  private let process: BoundProcess

  /// Starts an empty store.
  package init() throws {
    let program = Shared.packageRoot.appendingPathComponent(
      "Tests/RemoteStorageTests/Programs/store.py")
    process = try BoundProcess("python3", [program.path])
    guard let port = Int(process.firstLine) else {
      throw Program.Failure(description: "the store does not start")
    }
    self.port = port
  }

  /// The URL of the store.
  package var endpoint: String { "http://127.0.0.1:\(port)" }

  /// A request that the store received.
  package struct Request: Decodable, Sendable {
    package let method: String
    package let target: String
    /// The bytes of its body, and those of the body of the answer.
    package let size: Int
    package let sent: Int
    /// The fields of its head, by names in lower case.
    package let headers: [String: String]
  }

  /// Replaces the rules, in the form of the program as JSON, and forgets the requests so far.
  package func setRules(_ rules: String) throws {
    try carryOut(#"{"do": "rules", "rules": \#(rules)}"#)
  }

  /// Keeps a copy of all objects under a name.
  package func save(_ name: String) throws { try carryOut(#"{"do": "save", "name": "\#(name)"}"#) }

  /// Replaces all objects by a copy that was kept.
  package func load(_ name: String) throws { try carryOut(#"{"do": "load", "name": "\#(name)"}"#) }

  /// Moves the clock that dates the objects.
  package func advance(by seconds: Double) throws {
    try carryOut(#"{"do": "advance", "seconds": \#(seconds)}"#)
  }

  /// The protection of objects.
  package enum Mode: String, Sendable {
    case none = ""
    /// Objects are neither overwritten nor removed.
    case appendOnly = "append-only"
    /// Earlier versions stay, and can be removed.
    case versions
    /// Earlier versions stay, and cannot be removed. Bodies need their MD5.
    case locked
    /// A body is not compared with its SHA-256.
    case unchecked
  }

  /// Sets the protection of objects.
  package func protect(_ mode: Mode) throws {
    try carryOut(#"{"do": "mode", "mode": "\#(mode.rawValue)"}"#)
  }

  /// Accepts only requests that are signed with an access key.
  package func requireKey(_ name: String) throws {
    try carryOut(#"{"do": "key", "name": "\#(name)"}"#)
  }

  /// Lets the link drop after a number of further requests: connections are closed without an
  /// answer.
  ///
  /// - Parameter isFirstDone: whether the first of the lost requests is done, and only its answer
  ///   lost.
  package func dropLink(after requests: Int, isFirstDone: Bool) throws {
    try carryOut(#"{"do": "down", "after": \#(requests), "done": \#(isFirstDone)}"#)
  }

  /// Ends the interruption. Returns the number of lost requests.
  @discardableResult
  package func restoreLink() throws -> Int {
    let answer = Data(try process.ask(#"{"do": "up"}"#).utf8)
    return try JSONDecoder().decode([String: Int].self, from: answer)["lost"] ?? 0
  }

  /// The requests since the rules were set, without lost ones.
  package func requests() throws -> [Request] {
    try JSONDecoder().decode([Request].self, from: Data(process.ask(#"{"do": "log"}"#).utf8))
  }

  /// The keys of all objects, sorted.
  package func keys() throws -> [String] {
    try JSONDecoder().decode([String].self, from: Data(process.ask(#"{"do": "keys"}"#).utf8))
  }

  /// The keys of the objects whose content has a text.
  package func keys(ofObjectsWith text: String) throws -> [String] {
    try JSONDecoder().decode(
      [String].self, from: Data(process.ask(#"{"do": "search", "text": "\#(text)"}"#).utf8))
  }

  private func carryOut(_ command: String) throws {
    guard try process.ask(command) == "{}" else {
      throw Program.Failure(description: "the store refuses \(command)")
    }
  }
}
