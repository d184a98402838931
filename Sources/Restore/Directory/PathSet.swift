package import SystemIO

/// A set of paths that finds in O(log n) whether a member is at, above or below a path.
package struct PathSet: Sendable {
  private let paths: Set<ByteString>
  private let sorted: [ByteString]

  package init(_ paths: some Sequence<ByteString>) {
    self.paths = Set(paths)
    sorted = self.paths.sorted()
  }

  /// Whether a member is the path itself or a directory above it.
  package func covers(_ path: ByteString) -> Bool {
    !paths.isEmpty && path.andParents.contains { paths.contains($0) }
  }

  /// Whether a member is the path itself, above it or below it.
  package func isAbout(_ path: ByteString) -> Bool { covers(path) || holdsBelow(path) }

  /// Whether a member is below the path; such members are adjacent in byte order.
  private func holdsBelow(_ path: ByteString) -> Bool {
    if path.isEmpty { return !sorted.isEmpty }
    let start = ByteString(Array(path.bytes) + [UInt8(ascii: "/")])
    var (low, high) = (0, sorted.count)
    while low < high {
      let middle = (low + high) / 2
      if sorted[middle] < start { low = middle + 1 } else { high = middle }
    }
    return low < sorted.count && sorted[low].bytes.starts(with: start.bytes)
  }
}

extension ByteString {
  /// The path and each directory above it, the nearest first; the last is empty for a relative path.
  var andParents: [ByteString] {
    var (all, path) = ([self], self)
    while !path.isEmpty, path != "/" {
      path = path.parent
      all.append(path)
    }
    return all
  }
}
