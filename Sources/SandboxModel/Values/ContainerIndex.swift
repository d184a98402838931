internal import SystemIO

/// Finds the containers of a device by directory and by logical name. The cost of mapping a path
/// depends on its length and not on the number of containers.
struct ContainerIndex: Sendable {
  /// The indexes of the containers by the absolute paths of their directories, both real and as
  /// named by the layout.
  private var homes: [ByteString: [Int]] = [:]
  private var names: [LogicalContainer: Int] = [:]

  init(_ containers: [Container], root: ByteString) {
    for (place, container) in containers.enumerated() {
      names[container.logical] = place
      let named = container.path.isAbsolute ? container.path : root.appending(container.path)
      for home in Set([container.absolutePath, named]) { homes[home, default: []].append(place) }
    }
  }

  /// Returns the index of the container with a logical name.
  func place(of name: LogicalContainer) -> Int? { names[name] }

  /// Returns the containers at the path or above it, the nearest first, with the rest of the path.
  func containers(around path: ByteString) -> [(place: Int, inner: ByteString)] {
    var found: [(place: Int, inner: ByteString)] = []
    var home = path.bytes
    while !home.isEmpty {
      let key = ByteString(home)
      for place in homes[key] ?? [] {
        found.append(
          (place, ByteString(path.bytes[home.endIndex...].drop { $0 == ByteString.slash })))
      }
      guard let cut = home.lastIndex(of: ByteString.slash) else { break }
      home = home[..<cut]
    }
    for place in homes["/"] ?? [] where path.isAbsolute {
      found.append((place, ByteString(path.bytes.drop { $0 == ByteString.slash })))
    }
    return found
  }
}
