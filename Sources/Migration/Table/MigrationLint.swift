internal import PolicyEngine
internal import SystemIO

/// Finds the mistakes of a table whose values are valid: places without a pair or with the path of
/// another, places without an example, and examples that fail.
struct MigrationLint {
  private let table: MigrationTable
  private(set) var issues: [PolicyIssue] = []
  /// The places covered by a passing example, by index.
  private var tested: Set<String> = []

  init(_ table: MigrationTable) {
    self.table = table
    for place in table.places { check(place) }
    for packaging in Packaging.written { checkPaths(in: packaging) }
    for example in table.examples { run(example) }
    for place in table.places where !tested.contains(place.id) {
      add(
        .example, at: place.location, "the place '\(place.id)' has no example",
        expected: "an example with a path in it")
    }
  }

  private mutating func check(_ place: MigrationTable.Place) {
    guard place.paths.count < 2 else { return }
    add(
      .key, at: place.location, "the place '\(place.id)' has the path of one form",
      expected: "the paths of at least two of "
        + Packaging.written.map(\.rawValue).joined(separator: ", "))
  }

  private mutating func checkPaths(in packaging: Packaging) {
    var earlier: [MigrationTable.Path: String] = [:]
    for place in table.places {
      guard let path = place.paths[packaging] else { continue }
      if let other = earlier.updateValue(place.id, forKey: path) {
        add(
          .duplicate, at: place.location,
          "the places '\(other)' and '\(place.id)' have the same path in \(packaging.rawValue)",
          expected: "each path once")
      }
    }
  }

  private mutating func run(_ example: MigrationExample) {
    let route = MigrationRoute(
      from: end(example.from), to: end(example.to), table: table.isGeneral ? nil : table,
      general: table.isGeneral ? table : nil, names: MigrationNames.anyName)
    let path = example.path.inHome(of: route.from)
    if let place = route.place(of: path)?.place { tested.insert(place.id) }
    let result = route.destination(of: path)
    let wanted: MigrationRoute.Destination =
      switch example.expected {
      case .moves(let target): .path(target.inHome(of: route.to))
      case .noPlace: .noPlace
      case .skipped: .skipped("any reason")
      }
    if wanted == result || wanted.isSkipped && result.isSkipped { return }
    add(
      .example, at: example.location, "'\(path)' results in \(result.summary)",
      expected: wanted.summary)
  }

  /// Returns a side with the first identifier that the table states.
  private func end(_ packaging: Packaging) -> MigrationEnd {
    MigrationEnd(packaging, app: table.apps[packaging]?.first ?? "org.example.App", home: "/home")
  }

  private mutating func add(
    _ kind: PolicyIssue.Kind, at location: PolicyLocation, _ problem: String, expected: String
  ) {
    issues.append(PolicyIssue(kind, at: location, problem, expected: expected))
  }
}
