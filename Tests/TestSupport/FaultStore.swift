import Foundation

/// An object store that answers like S3, whose requests fail as a test requires
/// (`RemoteStorageTests/Programs/store.py`). It ends when this value is released, or when the tests
/// end.
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
    /// The number of bytes of its body, and of the body of the answer.
    package let size: Int
    package let sent: Int
    /// Its header fields, by names in lower case.
    package let headers: [String: String]
  }

  /// Replaces the rules, which are in the program's JSON form, and forgets the requests so far.
  package func setRules(_ rules: String) throws {
    try carryOut(#"{"do": "rules", "rules": \#(rules)}"#)
  }

  /// Keeps a copy of all objects under a name.
  package func save(_ name: String) throws { try carryOut(#"{"do": "save", "name": "\#(name)"}"#) }

  /// Replaces all objects with a copy that was kept.
  package func load(_ name: String) throws { try carryOut(#"{"do": "load", "name": "\#(name)"}"#) }

  /// Moves the clock that dates the objects.
  package func advance(by seconds: Double) throws {
    try carryOut(#"{"do": "advance", "seconds": \#(seconds)}"#)
  }

  /// The protection of objects, or a fault.
  package enum Mode: String, Sendable {
    case none = ""
    /// Objects can be neither overwritten nor removed.
    case appendOnly = "append-only"
    /// Earlier versions are kept, and can be removed.
    case versions
    /// Earlier versions are kept, and cannot be removed. Bodies need an MD5.
    case locked
    /// A body is not compared with its SHA-256.
    case unchecked
    /// Listings state the largest number as the size of each object.
    case hugeSizes = "huge"
  }

  /// Sets the protection of objects, or a fault.
  package func protect(_ mode: Mode) throws {
    try carryOut(#"{"do": "mode", "mode": "\#(mode.rawValue)"}"#)
  }

  /// Accepts only requests that are signed with an access key.
  package func requireKey(_ name: String) throws {
    try carryOut(#"{"do": "key", "name": "\#(name)"}"#)
  }

  /// Interrupts the link after a number of further requests: connections are closed without an
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

  /// The keys of the objects whose content contains a text.
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
