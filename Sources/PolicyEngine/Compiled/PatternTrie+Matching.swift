extension PatternTrie {
  /// Returns the steps whose patterns match a path, in order. Sibling conditions are tested, other
  /// conditions are not.
  ///
  /// - Parameter siblings: Returns the sibling names in the directory at a depth.
  func steps(
    matching path: [[UInt8]], from roots: [Int], siblings: (_ depth: Int) -> UInt64
  ) -> [Int] {
    var places: Set<UInt32> = []
    var matched: Set<UInt32> = []
    var sticky: Set<UInt32> = []
    func reach(_ node: UInt32, _ present: UInt64) {
      places.insert(node)
      if let depth = nodes[Int(node)].anyDepth { places.insert(depth) }
      for accepted in nodes[Int(node)].accepted
      where accepted.siblings == 0 || accepted.siblings & present != 0 {
        matched.insert(accepted.step)
        if accepted.isSticky { sticky.insert(accepted.step) }
      }
    }
    for root in roots { reach(UInt32(root), 0) }
    for (depth, name) in path.enumerated() {
      let (earlier, present) = (places, siblings(depth))
      (places, matched) = ([], sticky)
      let literal = literals.find(name.span)
      for place in earlier {
        let node = nodes[Int(place)]
        if node.loops { places.insert(place) }
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
