import Migration
import SystemIO
import Testing

struct RouteTests {
  @Test func aDebsProfileMovesToFlatpakAndSnap() {
    let flatpak = makeRoute("firefox", from: .deb, to: "org.mozilla.firefox", as: .flatpak)
    #expect(
      flatpak.destination(of: ".mozilla/firefox/profiles.ini")
        == .path(".var/app/org.mozilla.firefox/.mozilla/firefox/profiles.ini"))
    let snap = makeRoute("firefox", from: .deb, to: "firefox", as: .snap)
    #expect(
      snap.destination(of: ".mozilla/firefox/profiles.ini")
        == .path("snap/firefox/common/.mozilla/firefox/profiles.ini"))
    #expect(snap.destination(of: ".mozilla/firefox/x/lock").isSkipped)
    #expect(snap.destination(of: ".mozilla/firefox/x/locks") != .noPlace)
  }

  @Test func aPathMustBeWithinThePlaceByComponents() {
    let route = makeRoute("firefox", from: .deb, to: "org.mozilla.firefox", as: .flatpak)
    #expect(route.destination(of: ".mozilla2/a") == .noPlace)
    #expect(route.destination(of: ".config/mozillax/a") == .noPlace)
  }

  @Test func theLongestPlaceDecides() {
    let route = makeRoute("vlc", from: .snap, to: "org.videolan.VLC", as: .flatpak)
    #expect(
      route.destination(of: "snap/vlc/common/vlcrc")
        == .path(".var/app/org.videolan.VLC/config/vlc/vlcrc"))
    #expect(route.destination(of: "snap/vlc/common/vlcrc2") == .noPlace)
  }

  @Test func debianHasItsOwnPlaceIfTheTableSpecifiesIt() {
    let debian = makeRoute("steam", from: .deb, to: "com.valvesoftware.Steam", as: .flatpak)
    let target: ByteString = ".var/app/com.valvesoftware.Steam/.local/share/Steam/userdata/1"
    #expect(debian.destination(of: ".steam/debian-installation/userdata/1") == .path(target))
    let host = makeRoute("steam", from: .host, to: "com.valvesoftware.Steam", as: .flatpak)
    #expect(host.destination(of: ".local/share/Steam/userdata/1") == .path(target))
    let client: ByteString = ".var/app/com.valvesoftware.Steam/.steam"
    #expect(
      host.destination(of: ".steam/debian-installation/userdata/1")
        == .path(client.appending("debian-installation/userdata/1")))
    // An older installation has a directory where newer ones have a link.
    #expect(host.destination(of: ".steam/steam", isLink: true).isSkipped)
    #expect(host.destination(of: ".steam/steam") == .path(client.appending("steam")))
    #expect(
      host.destination(of: ".steam/steam/bin", isLink: true)
        == .path(client.appending("steam/bin")))
    #expect(
      host.destination(of: ".steam/registry.vdf") == .path(client.appending("registry.vdf")))
  }

  @Test func aClassicSnapUsesTheHomeDirectory() {
    let route = makeRoute("code", from: .deb, to: "code", as: .snap)
    #expect(route.destination(of: ".config/Code/User/a") == .path(".config/Code/User/a"))
  }

  @Test func theGeneralTableCoversOnlyDirectoriesWithTheAppsName() {
    let route = makeRoute("org.gnome.Maps", from: .host, to: "org.gnome.Maps", as: .flatpak)
    #expect(
      route.destination(of: ".local/share/gnome-maps/places.json")
        == .path(".var/app/org.gnome.Maps/data/gnome-maps/places.json"))
    #expect(route.destination(of: ".local/share/other/a") == .noPlace)
    #expect(route.destination(of: ".local/share") == .noPlace)
    #expect(route.destination(of: ".cache/gnome-maps/a").isSkipped)
    #expect(route.sources.contains(".config/maps"))
    #expect(!route.sources.contains(".config"))
  }

  @Test func settingsOfTheDesktopDoNotLeaveASandbox() {
    let route = makeRoute("org.example.App", from: .flatpak, to: "app", as: .host)
    #expect(route.destination(of: ".var/app/org.example.App/config/dconf/user").isSkipped)
    #expect(
      route.destination(of: ".var/app/org.example.App/config/app/a") == .path(".config/app/a"))
    #expect(route.destination(of: ".var/app/org.example.App/.persisted/a") == .noPlace)
  }

  @Test func betweenTwoUsersEveryPathStays() {
    let route = makeRoute(
      "org.mozilla.firefox", from: .flatpak, to: "org.mozilla.firefox", as: .flatpak,
      homes: ("/home/a", "/home/b"))
    let container: ByteString = ".var/app/org.mozilla.firefox"
    #expect(
      route.destination(of: container.appending("any/thing"))
        == .path(container.appending("any/thing")))
    #expect(route.destination(of: container.appending(".mozilla/firefox/x/.parentlock")).isSkipped)
    #expect(route.destination(of: ".var/app/org.other/any") == .noPlace)
    #expect(route.sources == [container])
    #expect(
      route.mapping.newPath(of: "/home/a/.var/app/org.mozilla.firefox/cache/x")
        == "/home/b/.var/app/org.mozilla.firefox/cache/x")
  }

  @Test func aSnapsRevisionsAreListedOnce() {
    let route = makeRoute("firefox", from: .snap, to: "firefox", as: .deb)
    #expect(route.sources == ["snap/firefox/common", "snap/firefox/current"])
  }

  @Test func aFlatpakSeesPersistedDirectoriesInItsHome() {
    let toFlatpak = makeRoute("firefox", from: .deb, to: "org.mozilla.firefox", as: .flatpak)
    // The path is the same for the running app, although the data is elsewhere.
    let profile: ByteString = "/home/u/.mozilla/firefox/x"
    #expect(toFlatpak.mapping.newPath(of: profile) == profile)
    let toSnap = makeRoute("org.mozilla.firefox", from: .flatpak, to: "firefox", as: .snap)
    let expected: ByteString = "/home/u/snap/firefox/common/.mozilla/firefox/x"
    #expect(toSnap.mapping.newPath(of: "/home/u/.mozilla/firefox/x") == expected)
    #expect(
      toSnap.mapping.newPath(of: "/home/u/.var/app/org.mozilla.firefox/.mozilla/firefox/x")
        == expected)
  }

  @Test func onlyPathsInOldPlacesAreMapped() {
    let mapping = makeRoute("chromium", from: .deb, to: "org.chromium.Chromium", as: .flatpak)
      .mapping
    #expect(
      mapping.newPath(of: "/home/u/.config/chromium/Default")
        == "/home/u/.var/app/org.chromium.Chromium/config/chromium/Default")
    #expect(mapping.newPath(of: "/home/u/Downloads") == nil)
    #expect(mapping.newPath(of: "/home/u/.config/chromium2") == nil)
    #expect(mapping.newPath(of: "/home/u/.config/chromium/../../x") == nil)
    #expect(mapping.newPath(of: ".config/chromium") == nil)
  }

  @Test func urlsOfFilesAreMapped() {
    let mapping = PathMapping([.init(old: "/old dir", new: "/new dir")])
    #expect(mapping.newURL(of: "file:///old%20dir/a%25.xpi") == "file:///new%20dir/a%25.xpi")
    #expect(mapping.newURL(of: "file://localhost/old%20dir/a") == "file:///new%20dir/a")
    #expect(
      mapping.newURL(of: "jar:file:///old%20dir/a.xpi!/b") == "jar:file:///new%20dir/a.xpi!/b")
    #expect(mapping.newURL(of: "file://host/old%20dir/a") == nil)
    #expect(mapping.newURL(of: "file:///old%2") == nil)
    #expect(mapping.newURL(of: "file:///old%20dir/%00") == nil)
    #expect(mapping.newURL(of: "file:///old%20dir/%2E%2E/x") == nil)
    #expect(mapping.newURL(of: "https://example.org/old%20dir") == nil)
  }
}
