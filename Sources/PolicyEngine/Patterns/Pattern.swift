/// A pattern of paths below a container's root, matched byte for byte (docs/policy.md, patterns).
package struct Pattern: Sendable, Hashable {
  /// The pattern as written, with escapes for bytes that are not UTF-8.
  package let text: String
  /// Whether ASCII letters match in either case.
  package let ignoresCase: Bool
  let components: [Component]

  enum Component: Hashable, Sendable {
    /// `**`: any number of components, including none. Never twice in a row.
    case anyDepth
    case name(PatternComponent)

    var isAnyDepth: Bool { self == .anyDepth }
    var name: PatternComponent? { if case .name(let name) = self { name } else { nil } }
  }

  init(text: String, ignoresCase: Bool, components: [Component]) {
    self.text = text
    self.ignoresCase = ignoresCase
    self.components = components
  }

  /// Whether the pattern covers everything below the named entries: its last component is `**`.
  package var coversDescendants: Bool { components.last?.isAnyDepth == true }

  /// The components before the first wildcard: the directory that the rule names, which a purge
  /// does not delete.
  package var fixedPrefix: [[UInt8]] {
    var prefix: [[UInt8]] = []
    for component in components {
      guard let name = component.name, name.globs.isEmpty, name.literals.count == 1 else { break }
      prefix.append(name.literals[0])
    }
    return prefix
  }

  /// Whether the pattern matches a path, given as components; empty for the container's root.
  package func matches(_ path: [[UInt8]]) -> Bool {
    isMatch(path.reduce(start) { advance($0, by: $1.span) })
  }
}

// MARK: - Step by step

extension Pattern {
  /// The state of a match after the first components of a path.
  package struct Progress: Sendable, Hashable {
    fileprivate var places: Set<Int>

    /// Whether no continuation of the path can match.
    package var isHopeless: Bool { places.isEmpty }
  }

  /// The state before the first component.
  package var start: Progress { closed([0]) }

  /// Returns the state after one more component.
  package func advance(_ progress: Progress, by name: Span<UInt8>) -> Progress {
    var next: Set<Int> = []
    for place in progress.places where place < components.count {
      switch components[place] {
      case .anyDepth: next.insert(place)
      case .name(let component): if component.matches(name) { next.insert(place + 1) }
      }
    }
    return closed(next)
  }

  /// Whether a path that ends in this state matches.
  package func isMatch(_ progress: Progress) -> Bool { progress.places.contains(components.count) }

  private func closed(_ places: Set<Int>) -> Progress {
    var all = places
    for place in places where place < components.count && components[place].isAnyDepth {
      all.insert(place + 1)
    }
    return Progress(places: all)
  }

  /// Whether the pattern is a single component, so that it matches names only.
  package var isOfNames: Bool { components.count == 1 && !coversDescendants }

  /// Whether a pattern of one component matches a name.
  package func matches(name: Span<UInt8>) -> Bool {
    components.count == 1 && components[0].name?.matches(name) ?? true
  }
}

extension Pattern: CustomStringConvertible {
  /// The pattern as written.
  package var description: String { text }
}
