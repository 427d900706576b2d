<?php
// The counter in MySQL: by unix socket, in a transaction, prepared, as published. With ?p=1 the worker keeps its
// connection (PDO::ATTR_PERSISTENT). A failure is told with status 200, as the published pages did.
try {
    $db = new PDO(
        'mysql:unix_socket=' . getenv('DB_SOCKET') . ';dbname=dbbench',
        'bench',
        'bench',
        [PDO::ATTR_PERSISTENT => isset($_GET['p'])]
    );
    $db->beginTransaction();
    $db->prepare('update incr set number = number +1')->execute();
    $select = $db->prepare('select number from incr');
    $select->execute();
    $number = $select->fetchColumn();
    $db->commit();
    printf('counter: %s', $number);
} catch (PDOException $failure) {
    echo 'MySQL failed: ', $failure->getMessage();
}
