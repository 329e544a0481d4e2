package site

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	siteFlag  = flag.String("site", "", "look at the site in this `folder`, not at a made-up one")
	pagesFlag = flag.String("pages", "", "look at these `pages`, such as index.html#machines, not at some of each kind")
	shotsFlag = flag.String("shots", "", "write pictures of the pages into this `folder`")
)

// TestBrowser opens pages of each kind from their files. No page may write to the console, load anything that
// is not there, or be wider than a phone. Without scripts the text is there, too.
func TestBrowser(t *testing.T) {
	b := startBrowser(t)
	dir := *siteFlag
	if dir == "" {
		dir, _ = made(t, sample())
	}
	for _, width := range []int{1280, 360} {
		for _, name := range somePages(t, dir) {
			b.open("file://"+filepath.ToSlash(filepath.Join(dir, name)), width)
			if got := b.eval("document.styleSheets.length + ' ' + (document.querySelectorAll('h1').length) + ' ' + (document.body.innerText.length > 50)"); got != "1 1 true" {
				t.Errorf("%s: style sheets, headings, text: %s", name, got)
			}
			if got := b.eval(fmt.Sprintf("String(document.documentElement.scrollWidth <= %d)", width)); got != "true" {
				t.Errorf("%s is wider than a screen of %d pixels", name, width)
			}
			if got := b.eval("String(document.querySelectorAll('th button').length > 0 || document.querySelectorAll('th').length === 0)"); got != "true" {
				t.Errorf("%s: the tables cannot be sorted", name)
			}
			if *shotsFlag != "" {
				b.picture(filepath.Join(*shotsFlag, fmt.Sprintf("%s-%d.png", strings.NewReplacer("/", "-", ".html", "", "#", "-").Replace(name), width)))
			}
			for _, said := range b.said() {
				t.Errorf("%s: the browser says %s", name, said)
			}
		}
	}
}

// TestWithoutScripts: text, tables and links are there, and nothing that only scripts would fill.
func TestWithoutScripts(t *testing.T) {
	b := startBrowser(t)
	dir, _ := made(t, sample())
	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	for _, name := range somePages(t, dir) {
		b.open("file://"+filepath.ToSlash(filepath.Join(dir, name)), 360)
		if got := b.eval("String(document.querySelectorAll('th button').length) + (document.querySelectorAll('main table a').length > 0)"); got != "0true" && !strings.HasPrefix(name, "technique") {
			t.Errorf("%s without scripts: %s", name, got)
		}
		if got := b.eval("String([...document.querySelectorAll('form, #tip')].every(function (e) { return e.offsetHeight === 0; }))"); got != "true" {
			t.Errorf("%s shows what only scripts can serve", name)
		}
	}
	for _, said := range b.said() {
		t.Errorf("the browser says %s", said)
	}
}

// TestSearch: the search finds exact shapes first, then near ones.
func TestSearch(t *testing.T) {
	b := startBrowser(t)
	dir, _ := made(t, sample())
	b.open("file://"+filepath.ToSlash(filepath.Join(dir, "index.html")), 1280)
	const find = "(function (text) { const f = document.querySelector('[name=shape]'); f.value = text; f.dispatchEvent(new Event('input')); const a = document.querySelector('#found a'); return document.querySelector('#found').innerText.split('\\n')[0] + '|' + (a ? a.getAttribute('href') : ''); })"
	for text, want := range map[string]string{
		"lstm 512 x 16 x 100":  "1 layer, and the nearest:|layer/lstm-forward-h512-b16-t100-l4.html",
		"512×64 forward":       "1 layer, and the nearest:|layer/lstm-forward-h512-b64-t100-l4.html",
		"B=17 H=500 lstm fp32": "No layer is exactly so. The nearest:|layer/lstm-forward-h512-b16-t100-l4.html",
		"gru 512":              "No layer has these words.|",
		"L=4 h=2048 b=16":      "1 layer, and the nearest:|layer/lstm-forward-h2048-b16-t100-l4.html",
	} {
		arg, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.eval(find + "(" + string(arg) + ")"); got != want {
			t.Errorf("%s: found %s, want %s", text, got, want)
		}
	}
	for _, said := range b.said() {
		t.Errorf("the browser says %s", said)
	}
}

// somePages are the index and the largest and the smallest page of each kind.
func somePages(t *testing.T, dir string) []string {
	t.Helper()
	if *pagesFlag != "" {
		return strings.Split(*pagesFlag, ",")
	}
	list := []string{"index.html"}
	for _, kind := range []string{"machine", "experiment", "layer", "layers", "technique", "place", "run"} {
		entries, err := os.ReadDir(filepath.Join(dir, kind))
		if err != nil {
			t.Fatal(err)
		}
		size := func(e os.DirEntry) int64 {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		least := slices.MinFunc(entries, func(a, b os.DirEntry) int { return int(size(a) - size(b)) })
		most := slices.MaxFunc(entries, func(a, b os.DirEntry) int { return int(size(a) - size(b)) })
		list = append(list, kind+"/"+least.Name(), kind+"/"+most.Name())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// A browser is a Chromium without a window, driven through a pair of pipes.
type browser struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	session string
	last    int
	words   []string // on the console since the last look
	loaded  bool
}

// startBrowser starts the browser of this machine; the test is skipped if there is none.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if at, err := exec.LookPath(name); err == nil && path == "" {
			path = at
		}
	}
	if path == "" || testing.Short() {
		t.Skip("needs chromium, chromium-browser or google-chrome, and a test that is not -short")
	}
	hear, toUs, err1 := os.Pipe()
	fromUs, say, err2 := os.Pipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{fromUs, toUs}
	if err := cmd.Start(); err != nil {
		t.Skip("the browser does not start: ", err)
	}
	_, _ = fromUs.Close(), toUs.Close()
	_ = hear.SetReadDeadline(time.Now().Add(8 * time.Minute))
	b := &browser{t: t, in: say, out: bufio.NewReader(hear)}
	t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil)
		_ = cmd.Wait()
		_, _ = say.Close(), hear.Close()
	})
	var made struct{ TargetID string }
	b.into(&made, b.call("Target.createTarget", map[string]any{"url": "about:blank"}))
	var attached struct{ SessionID string }
	b.into(&attached, b.call("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}))
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil)
	}
	return b
}

// call calls a method and returns its result.
func (b *browser) call(method string, params map[string]any) json.RawMessage {
	b.t.Helper()
	b.last++
	message := map[string]any{"id": b.last, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		b.t.Fatal("the browser is gone: ", err)
	}
	for {
		if id, result := b.hear(); id == b.last {
			return result
		}
	}
}

// hear takes the next message; id 0: it is an event.
func (b *browser) hear() (id int, result json.RawMessage) {
	b.t.Helper()
	text, err := b.out.ReadBytes(0)
	if err != nil {
		b.t.Fatal("the browser does not answer: ", err)
	}
	var m struct {
		ID             int
		Method         string
		Params, Result json.RawMessage
		Error          *struct{ Message string }
	}
	b.into(&m, text[:len(text)-1])
	switch m.Method {
	case "Page.loadEventFired":
		b.loaded = true
	case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
		b.words = append(b.words, string(m.Params))
	}
	if m.Error != nil {
		b.t.Fatal("the browser refuses: ", m.Error.Message)
	}
	return m.ID, m.Result
}

func (b *browser) into(v any, text []byte) {
	b.t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		b.t.Fatalf("%v in %.200s", err, text)
	}
}

// open loads a page on a screen of that width.
func (b *browser) open(address string, width int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
	b.loaded = false
	b.call("Page.navigate", map[string]any{"url": address})
	for !b.loaded {
		b.hear()
	}
}

// eval returns the string that an expression gives on the page.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var v struct{ Result struct{ Value any } }
	b.into(&v, b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}))
	return fmt.Sprint(v.Result.Value)
}

// said returns what the console has said since the last call.
func (b *browser) said() []string {
	words := b.words
	b.words = nil
	return words
}

// picture writes what the screen shows.
func (b *browser) picture(path string) {
	b.t.Helper()
	var v struct{ Data string }
	b.into(&v, b.call("Page.captureScreenshot", map[string]any{"format": "png"}))
	data, err := base64.StdEncoding.DecodeString(v.Data)
	if err == nil {
		err = os.WriteFile(path, data, 0o666)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
