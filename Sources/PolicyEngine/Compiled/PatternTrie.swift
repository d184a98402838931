internal import SandboxModel

/// All patterns of a policy as one nondeterministic automaton with shared prefixes.
///
/// A node stands for the part of a path matched so far. `**` leads to a node on which every name
/// loops. Nodes precede their successors.
struct PatternTrie: Sendable {
  var nodes: [Node] = []
  /// The names on edges.
  var literals = LiteralTable()
  /// The globs on edges.
  var globs: [Glob] = []
  private var globIndices: [Glob: Int] = [:]
  private var roots: [Root: Int] = [:]
  private var edges: [Edge: Int] = [:]
  private var components: [Pattern.Name: Int] = [:]

  /// The containers to which a part of the automaton applies.
  struct Root: Hashable, Sendable {
    let kind: ContainerKind
    let scope: CompiledPolicy.Scope
  }

  private struct Edge: Hashable, Sendable {
    let node: Int
    /// The component's number; -1 for `**`.
    let component: Int
  }

  struct Node: Sendable {
    /// The edges for names.
    var literals: [(literal: UInt32, node: UInt32)] = []
    /// The edges for globs.
    var globs: [(glob: UInt32, node: UInt32)] = []
    /// The node after `**`, which is reached together with this one.
    var anyDepth: UInt32?
    /// Whether every name leads back to this node.
    var loops = false
    /// The rules that match at this node.
    var accepted: [Accepted] = []
    /// One more than the last step that can match further down; 0 for none.
    var lastStep: UInt32 = 0
    /// One more than the last step further down that sets a class of data protection; 0 for none.
    var lastProtector: UInt32 = 0
    /// One more than the last step further down that can include data in a backup, for each view
    /// and destination; 0 for none.
    var lastKeeper = SIMD8<UInt32>()
    /// The sibling names that rules test for in the directory at this node.
    var siblings: UInt64 = 0
  }

  /// A rule that matches at a node.
  struct Accepted: Sendable {
    /// The index of the rule's step.
    let step: UInt32
    /// Whether the rule also matches everything further down.
    let isSticky: Bool
    /// The names of which one must exist beside the entry; 0 for no condition.
    let siblings: UInt64
  }

  static func question(_ view: Verdicts.View, _ destination: Destination) -> Int {
    (view == .keep ? 0 : 4) + destination.index
  }

  func root(_ kind: ContainerKind, _ scope: CompiledPolicy.Scope) -> Int? {
    roots[Root(kind: kind, scope: scope)]
  }

  /// Adds a pattern for one container kind.
  mutating func insert(
    _ pattern: Pattern, kind: ContainerKind, scope: CompiledPolicy.Scope, step: Int,
    siblings: UInt64
  ) {
    var node = root(Root(kind: kind, scope: scope))
    for (index, component) in pattern.components.enumerated() {
      switch component {
      case .anyDepth where index == pattern.components.count - 1: break
      case .anyDepth: node = depth(below: node)
      case .name(let name): node = child(of: node, name)
      }
    }
    nodes[node].accepted.append(
      Accepted(
        step: UInt32(step), isSticky: pattern.coversDescendants, siblings: siblings))
  }

  private mutating func makeNode() -> Int {
    nodes.append(Node())
    return nodes.count - 1
  }

  private mutating func root(_ root: Root) -> Int {
    if let node = roots[root] { return node }
    let node = makeNode()
    roots[root] = node
    return node
  }

  private mutating func depth(below node: Int) -> Int {
    if let known = nodes[node].anyDepth { return Int(known) }
    let depth = makeNode()
    nodes[depth].loops = true
    nodes[node].anyDepth = UInt32(depth)
    return depth
  }

  private mutating func child(of node: Int, _ name: Pattern.Name) -> Int {
    let component = components[name] ?? components.count
    components[name] = component
    let edge = Edge(node: node, component: component)
    if let known = edges[edge] { return known }
    let child = makeNode()
    edges[edge] = child
    for literal in name.literals {
      nodes[node].literals.append((literals.insert(literal), UInt32(child)))
    }
    for glob in name.globs {
      let index = globIndices[glob] ?? globs.count
      if index == globs.count {
        globs.append(glob)
        globIndices[glob] = index
      }
      nodes[node].globs.append((UInt32(index), UInt32(child)))
    }
    return child
  }

  /// Computes for each node the steps that can match further down. Called after the last `insert`.
  mutating func finish(_ operations: [Operation]) {
    for index in nodes.indices.reversed() {
      nodes[index].literals.sort { $0 < $1 }
      let children = nodes[index].literals.map(\.node) + nodes[index].globs.map(\.node)
      for child in Set(children) { inherit(from: Int(child), at: index, operations) }
      if let depth = nodes[index].anyDepth { record(nodes[Int(depth)], at: index) }
    }
    (globIndices, edges, components) = ([:], [:], [:])
  }

  private mutating func inherit(from child: Int, at index: Int, _ operations: [Operation]) {
    record(nodes[child], at: index)
    for accepted in nodes[child].accepted {
      let step = accepted.step + 1
      nodes[index].lastStep = max(nodes[index].lastStep, step)
      nodes[index].siblings |= accepted.siblings
      let operation = operations[Int(accepted.step)]
      if operation.setsProtection {
        nodes[index].lastProtector = max(nodes[index].lastProtector, step)
      }
      for destination in Destination.allCases {
        if operation.keep.mayKeep(for: destination) {
          raise(Self.question(.keep, destination), at: index, to: step)
        }
        if operation.platform.mayKeep(for: destination) {
          raise(Self.question(.platform, destination), at: index, to: step)
        }
      }
    }
  }

  private mutating func record(_ child: Node, at index: Int) {
    nodes[index].lastStep = max(nodes[index].lastStep, child.lastStep)
    nodes[index].lastProtector = max(nodes[index].lastProtector, child.lastProtector)
    nodes[index].lastKeeper = pointwiseMax(nodes[index].lastKeeper, child.lastKeeper)
  }

  private mutating func raise(_ question: Int, at index: Int, to step: UInt32) {
    nodes[index].lastKeeper[question] = max(nodes[index].lastKeeper[question], step)
  }
}

extension PatternTrie {
  /// Returns the steps whose patterns match a path, in order. Sibling conditions are tested, other
  /// conditions are not.
  ///
  /// - Parameter siblings: Returns the sibling names in the directory at a depth.
  func steps(
    matching path: [[UInt8]], from roots: [Int], siblings: (_ depth: Int) -> UInt64
  ) -> [Int] {
    var positions: Set<UInt32> = []
    var matched: Set<UInt32> = []
    var sticky: Set<UInt32> = []
    func reach(_ node: UInt32, _ present: UInt64) {
      positions.insert(node)
      if let depth = nodes[Int(node)].anyDepth { positions.insert(depth) }
      for accepted in nodes[Int(node)].accepted
      where accepted.siblings == 0 || accepted.siblings & present != 0 {
        matched.insert(accepted.step)
        if accepted.isSticky { sticky.insert(accepted.step) }
      }
    }
    for root in roots { reach(UInt32(root), 0) }
    for (depth, name) in path.enumerated() {
      let (earlier, present) = (positions, siblings(depth))
      (positions, matched) = ([], sticky)
      let literal = literals.find(name.span)
      for position in earlier {
        let node = nodes[Int(position)]
        if node.loops { positions.insert(position) }
        if let literal { for target in node.targets(of: literal) { reach(target, present) } }
        for edge in node.globs where globs[Int(edge.glob)].matches(name.span) {
          reach(edge.node, present)
        }
      }
    }
    return matched.map { Int($0) }.sorted()
  }
}

extension PatternTrie.Node {
  /// Returns the targets of a name.
  func targets(of literal: UInt32) -> [UInt32] {
    var low = 0
    var high = literals.count
    while low < high {
      let middle = (low + high) / 2
      if literals[middle].literal < literal { low = middle + 1 } else { high = middle }
    }
    var targets: [UInt32] = []
    while low < literals.count, literals[low].literal == literal {
      targets.append(literals[low].node)
      low += 1
    }
    return targets
  }
}

extension PatternTrie {
  /// A table of names with a number each, with lookup that does not allocate.
  struct LiteralTable: Sendable {
    private var bytes: [UInt8] = []
    private var starts: [UInt32] = [0]
    /// The hash table: a name's number plus one, or 0 for an empty slot.
    private var slots: [UInt32] = Array(repeating: 0, count: 16)

    var count: Int { starts.count - 1 }

    /// Returns the bytes of a name.
    func name(_ number: UInt32) -> [UInt8] {
      Array(bytes[Int(starts[Int(number)])..<Int(starts[Int(number) + 1])])
    }

    /// Returns the length of a name in bytes.
    func length(_ number: UInt32) -> Int { Int(starts[Int(number) + 1] - starts[Int(number)]) }

    /// Returns the number of a name and adds the name if it is new.
    mutating func insert(_ name: [UInt8]) -> UInt32 {
      if let known = find(name.span) { return known }
      if (count + 1) * 2 > slots.count { grow() }
      let number = UInt32(count)
      bytes.append(contentsOf: name)
      starts.append(UInt32(bytes.count))
      insert(number)
      return number
    }

    /// Returns the number of a name, or nil if the table does not contain it.
    @inline(__always)
    func find(_ name: Span<UInt8>) -> UInt32? {
      let mask = slots.count - 1
      var slot = Self.hash(name) & mask
      while slots[slot] != 0 {
        let number = slots[slot] - 1
        if isName(number, name) { return number }
        slot = (slot + 1) & mask
      }
      return nil
    }

    @inline(__always)
    private func isName(_ number: UInt32, _ name: Span<UInt8>) -> Bool {
      let start = Int(starts[Int(number)])
      guard Int(starts[Int(number) + 1]) - start == name.count else { return false }
      for index in 0..<name.count where bytes[start + index] != name[index] { return false }
      return true
    }

    private mutating func grow() {
      slots = Array(repeating: 0, count: slots.count * 2)
      for number in 0..<UInt32(count) { insert(number) }
    }

    private mutating func insert(_ number: UInt32) {
      let mask = slots.count - 1
      var slot = Self.hash(name(number).span) & mask
      while slots[slot] != 0 { slot = (slot + 1) & mask }
      slots[slot] = number + 1
    }

    /// FNV-1a with a final mixing step; names are short.
    @inline(__always)
    private static func hash(_ name: Span<UInt8>) -> Int {
      var hash: UInt64 = 0xcbf2_9ce4_8422_2325
      for index in 0..<name.count { hash = (hash ^ UInt64(name[index])) &* 0x100_0000_01b3 }
      hash ^= hash >> 29
      return Int(truncatingIfNeeded: hash & 0x7fff_ffff)
    }
  }
}
