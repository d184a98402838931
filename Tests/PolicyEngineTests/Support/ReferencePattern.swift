/// A slow and simple matcher: it backtracks over the pattern's text itself, and shares no code with
/// the automaton. It supports the whole grammar except non-ASCII letters.
enum ReferencePattern {
  static func matches(_ pattern: String, _ path: [[UInt8]]) -> Bool {
    let components = split(pattern)
    return matches(components[...], path[...])
  }

  private static func split(_ pattern: String) -> [[UInt8]] {
    pattern.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }
  }

  private static func matches(
    _ pattern: ArraySlice<[UInt8]>, _ path: ArraySlice<[UInt8]>
  ) -> Bool {
    guard let first = pattern.first else { return path.isEmpty }
    if first == Array("**".utf8) {
      if matches(pattern.dropFirst(), path) { return true }
      return !path.isEmpty && matches(pattern, path.dropFirst())
    }
    guard let name = path.first else { return false }
    return matchesName(first[...], name[...]) && matches(pattern.dropFirst(), path.dropFirst())
  }

  private static func matchesName(
    _ pattern: ArraySlice<UInt8>, _ name: ArraySlice<UInt8>
  ) -> Bool {
    guard let first = pattern.first else { return name.isEmpty }
    let rest = pattern.dropFirst()
    switch first {
    case UInt8(ascii: "*"):
      return matchesName(rest, name) || (!name.isEmpty && matchesName(pattern, name.dropFirst()))
    case UInt8(ascii: "?"): return !name.isEmpty && matchesName(rest, name.dropFirst())
    case UInt8(ascii: "["):
      guard let end = rest.firstIndex(of: UInt8(ascii: "]")), let byte = name.first else {
        return false
      }
      return isMember(byte, rest[..<end])
        && matchesName(pattern[(end + 1)...], name.dropFirst())
    case UInt8(ascii: "{"):
      guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else { return false }
      let tail = Array(pattern[(end + 1)...])
      return rest[..<end].split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        .contains { matchesName((Array($0) + tail)[...], name) }
    case UInt8(ascii: "\\"):
      return rest.first == name.first && matchesName(rest.dropFirst(), name.dropFirst())
    default: return name.first == first && matchesName(rest, name.dropFirst())
    }
  }

  private static func isMember(_ byte: UInt8, _ set: ArraySlice<UInt8>) -> Bool {
    var set = set
    let isInverted = set.first == UInt8(ascii: "!")
    if isInverted { set = set.dropFirst() }
    var isMember = false
    while let low = set.first {
      if set.dropFirst().first == UInt8(ascii: "-"), let high = set.dropFirst(2).first {
        isMember = isMember || (low...high).contains(byte)
        set = set.dropFirst(3)
      } else {
        isMember = isMember || low == byte
        set = set.dropFirst()
      }
    }
    return isMember != isInverted
  }
}
