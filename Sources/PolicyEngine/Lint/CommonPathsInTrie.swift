/// Finds paths that a pattern matches together with patterns of an automaton.
///
/// It follows the pattern and the automaton in parallel and visits each pair of positions once, so
/// it can miss additional ways in which two patterns meet.
struct CommonPathsInTrie {
  private let pattern: Pattern
  private let trie: PatternTrie
  /// The steps of the rules to consider.
  private let steps: Range<Int>
  private let limit: Int
  private var path: [[UInt8]] = []
  private var seen: Set<Pair> = []
  /// The number of pairs that may still be visited.
  private(set) var budget: Int
  private(set) var found: [[[UInt8]]] = []

  private struct Pair: Hashable {
    let place: Int
    let node: UInt32
  }

  init(_ pattern: Pattern, _ trie: PatternTrie, steps: Range<Int>, limit: Int, budget: Int) {
    self.pattern = pattern
    self.trie = trie
    self.steps = steps
    self.limit = limit
    self.budget = budget
  }

  /// Searches from a root of the automaton.
  mutating func run(_ root: Int) { if !steps.isEmpty { visit(0, UInt32(root)) } }

  private mutating func visit(_ place: Int, _ node: UInt32) {
    guard budget > 0, found.count < limit,
      seen.insert(Pair(place: place, node: node)).inserted
    else { return }
    budget -= 1
    let here = trie.nodes[Int(node)]
    note(here, place)
    guard Int(here.lastStep) > steps.lowerBound else { return }
    if let depth = here.anyDepth { visit(place, depth) }
    guard place < pattern.components.count else { return }
    switch pattern.components[place] {
    case .anyDepth:
      visit(place + 1, node)
      for edge in here.literals {
        take(trie.literals.name(edge.literal), place: place, node: edge.node)
      }
      for edge in here.globs {
        if let name = trie.globs[Int(edge.glob)].sample(filling: Pattern.Name.filler) {
          take(name, place: place, node: edge.node)
        }
      }
    case .name(let component): follow(component, from: here, node: node, place: place)
    }
  }

  /// Follows a component of the pattern along the edges that can match the same name.
  private mutating func follow(
    _ component: Pattern.Name, from here: PatternTrie.Node, node: UInt32, place: Int
  ) {
    if here.loops, let name = component.samples.first { take(name, place: place + 1, node: node) }
    for name in component.literals {
      guard let literal = trie.literals.find(name.span) else { continue }
      for target in here.targets(of: literal) { take(name, place: place + 1, node: target) }
    }
    if !component.globs.isEmpty {
      for edge in here.literals {
        let name = trie.literals.name(edge.literal)
        if component.matches(name) { take(name, place: place + 1, node: edge.node) }
      }
    }
    for edge in here.globs {
      let other = Pattern.Name(literals: [], globs: [trie.globs[Int(edge.glob)]])
      for name in component.commonNames(with: other).prefix(2) {
        take(name, place: place + 1, node: edge.node)
      }
    }
  }

  private mutating func take(_ name: [UInt8], place: Int, node: UInt32) {
    path.append(name)
    visit(place, node)
    path.removeLast()
  }

  /// Records the path if both the pattern and a rule match here.
  private mutating func note(_ here: PatternTrie.Node, _ place: Int) {
    let rest = Pattern(
      text: "", ignoresCase: false, components: Array(pattern.components[place...]))
    for accepted in here.accepted where steps.contains(Int(accepted.step)) {
      if rest.components.allSatisfy(\.isAnyDepth) {
        found.append(path)
      } else if accepted.isSticky {
        found += rest.samples(depth: 0).prefix(limit).map { path + $0 }
      }
    }
  }
}
