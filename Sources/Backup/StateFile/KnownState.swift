internal import Codecs
internal import SystemIO

/// The contents of a valid state file.
struct KnownState: Sendable {
  let file: RecordFile
  let head: StateHead
  let containers: [KnownContainer]

  /// Opens the state in a file, from the newest of its heads that has a valid table of containers.
  ///
  /// - Throws: the reason why there is none.
  init(_ file: consuming Descriptor, _ key: StateKey) throws(StateFault) {
    let heads = Self.heads(file)
    guard !heads.isEmpty else { throw StateFault("it is damaged or of another version") }
    guard heads.contains(where: { $0.key == key }) else {
      throw StateFault("it belongs to another source or repository")
    }
    for head in heads where head.key == key {
      guard let table = head.containers?.bytes(in: file),
        let containers = ContainerTable.read(table)
      else { continue }
      self.head = head
      self.containers = containers
      self.file = RecordFile(file, end: max(head.end, StateHead.firstRecord))
      return
    }
    throw StateFault("it is damaged")
  }

  /// Returns the valid heads, the newest first.
  private static func heads(_ file: borrowing Descriptor) -> [StateHead] {
    var heads: [StateHead] = []
    for place in StateHead.places {
      guard let bytes = try? file.read(count: StateHead.size, at: place),
        let head = StateHead(bytes)
      else { continue }
      heads.append(head)
    }
    return heads.sorted { $0.generation > $1.generation }
  }
}

/// The reason why a state file is not used.
struct StateFault: Error {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}
