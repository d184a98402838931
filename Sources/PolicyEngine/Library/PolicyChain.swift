internal import SandboxModel

/// A policy with the policies that it extends, in ascending order of precedence.
struct PolicyChain {
  private let library: PolicyLibrary
  private(set) var documents: [PolicyDocument] = []
  private(set) var issues: [PolicyIssue] = []
  /// The policies from the first one to the current one.
  private var path: [String] = []
  private var done: Set<String> = []

  init(of document: PolicyDocument, in library: PolicyLibrary) {
    self.library = library
    visit(document)
  }

  private mutating func visit(_ document: PolicyDocument) {
    let name = document.name ?? document.source.name
    path.append(name)
    for reference in document.extends {
      if let start = path.firstIndex(of: reference.name) {
        refuseCycle(reference, path[start...])
      } else if done.contains(reference.name) {
        continue
      } else if let base = library.policy(reference.name) {
        checkLayout(of: base, against: document, reference)
        visit(base)
      } else {
        refuse(reference)
      }
    }
    path.removeLast()
    done.insert(name)
    documents.append(document)
  }

  private mutating func refuseCycle(
    _ reference: PolicyDocument.Reference, _ cycle: ArraySlice<String>
  ) {
    let chain = (cycle + [reference.name]).joined(separator: " extends ")
    issues.append(
      PolicyIssue(
        .extends, at: reference.location, "the policies extend each other: \(chain)",
        expected: "policies without a cycle"))
  }

  private mutating func refuse(_ reference: PolicyDocument.Reference) {
    let names = library.policyNames
    let guess = Resemblance.nearest(to: reference.name, among: names)
    issues.append(
      PolicyIssue(
        .extends, at: reference.location, "there is no policy '\(reference.name)'",
        expected: guess.map { "'\($0)'" } ?? "one of \(names.joined(separator: ", "))"))
  }

  private mutating func checkLayout(
    of base: PolicyDocument, against document: PolicyDocument,
    _ reference: PolicyDocument.Reference
  ) {
    guard let layout = document.layout, let other = base.layout, layout != other else { return }
    issues.append(
      PolicyIssue(
        .extends, at: reference.location,
        "the policy '\(reference.name)' is for the layout \(other.rawValue)",
        expected: "a policy for \(layout.rawValue), or for any layout"))
  }
}
